import { execFileSync } from "node:child_process";
import { expect, test } from "vitest";
import { curlCommand } from "../../../server/security/curl-command.ts";

test("a shell splits the command into the original words, and curl sees no password in a path", () => {
  const client = { certificate: "/a b/it's:1.crt", key: "/a b/it's:1.key" };
  const command = curlCommand("https://db.example/databases", client, ["--cacert", "$HOME;ca.crt"]);
  const words = execFileSync("sh", ["-c", command.replace(/^curl/, "printf '%s\\n'")], {
    encoding: "utf8",
  });
  expect(words.split("\n").slice(0, -1)).toEqual([
    ...["--cacert", "$HOME;ca.crt"],
    ...["--cert", "/a b/it's\\:1.crt", "--key", "/a b/it's:1.key"],
    "https://db.example/databases",
  ]);
});
