/**
 * `jackdaw completion`: scripts for shells. They hold the words of the table, so a completion starts no process.
 */
import { optionsOf } from "../arguments.ts";
import type { Command, Surroundings } from "../command.ts";
import { Failure } from "../failure.ts";

const shells = { bash: bashScript, zsh: zshScript, fish: fishScript, pwsh: pwshScript } as const;

export async function run({ arguments: [shell = ""], table, print }: Surroundings): Promise<void> {
  if (!Object.hasOwn(shells, shell)) {
    throw new Failure(
      "usage",
      `There is no completion for '${shell}'; there is for ${Object.keys(shells).join(", ")}`,
    );
  }
  print(shells[shell as keyof typeof shells](table));
}

const firstWords = (table: readonly Command[]) => [
  ...new Set(table.map(({ name }) => name.split(" ")[0] ?? "")),
];

/** What may follow the first word: second words of a group, and options of its commands. */
function followers(table: readonly Command[], first: string): string[] {
  const own = table.filter(({ name }) => name.split(" ")[0] === first);
  const seconds = own.flatMap(({ name }) => name.split(" ").slice(1));
  const options = own.flatMap((command) =>
    Object.keys(optionsOf(command)).map((one) => `--${one}`),
  );
  return [...seconds, ...new Set(options)];
}

function bashScript(table: readonly Command[]): string {
  const cases = firstWords(table).map(
    (first) => `    ${first}) words="${followers(table, first).join(" ")}" ;;`,
  );
  return [
    "_jackdaw() {",
    `  local current="\${COMP_WORDS[COMP_CWORD]}" words`,
    `  case "\${COMP_WORDS[1]}" in`,
    ...cases,
    "  esac",
    `  if [ "$COMP_CWORD" -eq 1 ]; then words="${firstWords(table).join(" ")}"; fi`,
    '  COMPREPLY=($(compgen -W "$words" -- "$current"))',
    `  if [ "\${#COMPREPLY[@]}" -eq 0 ]; then COMPREPLY=($(compgen -f -- "$current")); fi`,
    "}",
    "complete -F _jackdaw jackdaw",
  ].join("\n");
}

function zshScript(table: readonly Command[]): string {
  const cases = firstWords(table).map(
    (first) => `    ${first}) compadd -- ${followers(table, first).join(" ")} ;;`,
  );
  return [
    "#compdef jackdaw",
    "_jackdaw() {",
    `  if (( CURRENT == 2 )); then compadd -- ${firstWords(table).join(" ")}; return; fi`,
    '  case "$words[2]" in',
    ...cases,
    "  esac",
    "  _files",
    "}",
    "compdef _jackdaw jackdaw",
  ].join("\n");
}

function fishScript(table: readonly Command[]): string {
  const quoted = (text: string) => `'${text.replaceAll("\\", "\\\\").replaceAll("'", "\\'")}'`;
  return table
    .flatMap((command) => {
      const [first = "", second] = command.name.split(" ");
      const seen = `__fish_seen_subcommand_from ${first}`;
      const about = quoted(command.about);
      const word =
        second === undefined
          ? `complete -c jackdaw -n __fish_use_subcommand -a ${first} -d ${about}`
          : `complete -c jackdaw -n ${quoted(seen)} -a ${second} -d ${about}`;
      const options = Object.entries(optionsOf(command)).map(
        ([name, option]) =>
          `complete -c jackdaw -n ${quoted(seen)} -l ${name}${option.value === undefined ? "" : " -r"} -d ${quoted(option.about)}`,
      );
      const group =
        second === undefined ? [] : [`complete -c jackdaw -n __fish_use_subcommand -a ${first}`];
      return [...group, word, ...options];
    })
    .filter((line, index, all) => all.indexOf(line) === index)
    .join("\n");
}

function pwshScript(table: readonly Command[]): string {
  const list = (words: readonly string[]) => words.map((word) => `'${word}'`).join(", ");
  return [
    "Register-ArgumentCompleter -Native -CommandName jackdaw -ScriptBlock {",
    "  param($wordToComplete, $commandAst, $cursorPosition)",
    "  $followers = @{",
    ...firstWords(table).map((first) => `    '${first}' = @(${list(followers(table, first))})`),
    "  }",
    "  $words = $commandAst.CommandElements",
    `  $first = @(${list(firstWords(table))})`,
    "  $isFirst = $words.Count -lt 2 -or ($words.Count -eq 2 -and $wordToComplete -ne '')",
    "  $choices = if ($isFirst) { $first } else { $followers[$words[1].ToString()] }",
    '  $choices | Where-Object { $_ -like "$wordToComplete*" } | ForEach-Object { [System.Management.Automation.CompletionResult]::new($_) }',
    "}",
  ].join("\n");
}
