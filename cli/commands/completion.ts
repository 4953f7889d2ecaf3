/**
 * `jackdaw completion`: completion scripts for shells. Commands and options are part of the script, so completing
 * them starts no process; names of databases, indexes and operations are requested from the server with `jackdaw
 * completion names`.
 */
import { settings } from "../../server/settings/setting-table.ts";
import { connectionOptions, optionsOf } from "../arguments.ts";
import { inDatabase } from "../client.ts";
import { type Command, type CommandContext, type NameType, nameTypes } from "../command.ts";
import { Failure } from "../failure.ts";

const shells = { bash: bashScript, zsh: zshScript, fish: fishScript, pwsh: pwshScript } as const;
const namesMs = 1000;
const namesMax = 500;

export async function run(context: CommandContext): Promise<void> {
  const { command, arguments: given, table, print } = context;
  const [word = ""] = given;
  if (command.name === "completion names") {
    for (const name of await namesOf(context, word)) print(name);
    return;
  }
  if (!Object.hasOwn(shells, word)) {
    throw new Failure(
      "usage",
      `No completion for '${word}'; supported shells: ${Object.keys(shells).join(", ")}`,
    );
  }
  print(shells[word as keyof typeof shells](table));
}

/** Returns names, or none if the server does not respond within `namesMs`. @throws Failure usage for an unknown type */
async function namesOf(
  { client, options, environment }: CommandContext,
  kind: string,
): Promise<readonly string[]> {
  if (!nameTypes.some((one) => one === kind)) {
    throw new Failure("usage", `'${kind}' must be one of ${nameTypes.join(", ")}`);
  }
  const database = options.text("database") ?? environment["JACKDAW_DATABASE"];
  try {
    const signal = AbortSignal.timeout(namesMs);
    if (kind !== "databases" && !database) return [];
    const path = kind === "databases" ? "/databases" : inDatabase(database ?? "", kind);
    const query = kind === "operations" ? {} : { namesOnly: true };
    const reply = (await client().json(path, { query, signal })) as {
      Databases?: (string | { Name: string })[];
      Results?: (string | { Id: number })[];
    };
    const found = reply.Databases ?? reply.Results ?? [];
    return found.slice(0, namesMax).map((one) => {
      if (typeof one === "string") return one;
      return String("Name" in one ? one.Name : one.Id);
    });
  } catch {
    return [];
  }
}

const firstWords = (table: readonly Command[]) => [
  ...new Set(table.map(({ name }) => name.split(" ")[0] ?? "")),
];

/** Settings of `serve`, given as `--DataDir=./data`. */
const settingNames = ["config-path", ...Object.keys(settings)];

/** Returns completions after the first word: second words of a group, and options of its commands; settings. */
function followers(table: readonly Command[], first: string): string[] {
  if (first === "serve") return [...settingNames.map((name) => `--${name}=`), "--help"];
  const own = table.filter(({ name }) => name.split(" ")[0] === first);
  const seconds = own.flatMap(({ name }) => name.split(" ").slice(1));
  const options = own.flatMap((command) =>
    Object.keys(optionsOf(command)).map((one) => `--${one}`),
  );
  return [...seconds, ...new Set(options)];
}

/** Returns the options whose value is a name, by the type of the named object. */
function namingOptions(table: readonly Command[]): Map<NameType, string[]> {
  const found = new Map<NameType, string[]>();
  for (const command of table) {
    for (const [name, { names, short }] of Object.entries(optionsOf(command))) {
      if (names === undefined) continue;
      const flags = [`--${name}`, ...(short === undefined ? [] : [`-${short}`])];
      found.set(names, [...new Set([...(found.get(names) ?? []), ...flags])]);
    }
  }
  return found;
}

/** Returns the two-word commands whose first argument is a name, by the type of the named object. */
function namingCommands(table: readonly Command[]): Map<NameType, string[]> {
  const found = new Map<NameType, string[]>();
  for (const { name, arguments: given } of table) {
    const names = given[0]?.names;
    if (names !== undefined) found.set(names, [...(found.get(names) ?? []), name]);
  }
  return found;
}

/** Connection options, which the script forwards to `jackdaw completion names`. */
const forwardedOptions = [...Object.keys(connectionOptions), "database"].map((name) => `--${name}`);

function bashScript(table: readonly Command[]): string {
  const cases = firstWords(table).map(
    (first) => `    ${first}) words="${followers(table, first).join(" ")}" ;;`,
  );
  const options = [...namingOptions(table)].map(
    ([kind, names]) => `    ${names.join("|")}) kind=${kind} ;;`,
  );
  const commands = [...namingCommands(table)].map(
    ([kind, names]) => `      ${names.map((name) => `"${name}"`).join("|")}) kind=${kind} ;;`,
  );
  return [
    "_jackdaw() {",
    `  local current="\${COMP_WORDS[COMP_CWORD]}" words kind at passed=()`,
    `  case "\${COMP_WORDS[1]}" in`,
    ...cases,
    "  esac",
    `  if [ "$COMP_CWORD" -eq 1 ]; then words="${firstWords(table).join(" ")}"; fi`,
    `  case "\${COMP_WORDS[COMP_CWORD-1]}" in`,
    ...options,
    "  esac",
    '  if [ "$COMP_CWORD" -eq 3 ] && [[ "$current" != -* ]]; then',
    `    case "\${COMP_WORDS[1]} \${COMP_WORDS[2]}" in`,
    ...commands,
    "    esac",
    "  fi",
    '  if [ -n "$kind" ]; then',
    `    for ((at = 2; at < \${#COMP_WORDS[@]}; at++)); do`,
    "      if ((at + 1 == COMP_CWORD)); then continue; fi",
    `      case "\${COMP_WORDS[at]}" in`,
    `        ${forwardedOptions.join("|")}|-d) passed+=("\${COMP_WORDS[at]}" "\${COMP_WORDS[at+1]}") ;;`,
    "      esac",
    "    done",
    `    words="$(jackdaw completion names "$kind" "\${passed[@]}" 2>/dev/null)"`,
    "  fi",
    '  COMPREPLY=($(compgen -W "$words" -- "$current"))',
    `  if [[ "\${COMPREPLY[0]}" == *= ]]; then compopt -o nospace 2>/dev/null; fi`,
    `  if [ "\${#COMPREPLY[@]}" -eq 0 ]; then COMPREPLY=($(compgen -f -- "$current")); fi`,
    "}",
    "complete -F _jackdaw jackdaw",
  ].join("\n");
}

function zshScript(table: readonly Command[]): string {
  const cases = firstWords(table).map(
    (first) =>
      `    ${first}) compadd ${first === "serve" ? "-S '' " : ""}-- ${followers(table, first).join(" ")} ;;`,
  );
  const options = [...namingOptions(table)].map(
    ([kind, names]) => `    ${names.join("|")}) kind=${kind} ;;`,
  );
  const commands = [...namingCommands(table)].map(
    ([kind, names]) => `      ${names.map((name) => `"${name}"`).join("|")}) kind=${kind} ;;`,
  );
  return [
    "#compdef jackdaw",
    "_jackdaw() {",
    '  local kind="" at',
    "  local -a passed",
    `  if (( CURRENT == 2 )); then compadd -- ${firstWords(table).join(" ")}; return; fi`,
    '  case "$words[CURRENT-1]" in',
    ...options,
    "  esac",
    '  if (( CURRENT == 4 )) && [[ "$words[CURRENT]" != -* ]]; then',
    '    case "$words[2] $words[3]" in',
    ...commands,
    "    esac",
    "  fi",
    '  if [[ -n "$kind" ]]; then',
    "    for (( at = 3; at <= $#words; at++ )); do",
    "      if (( at + 1 == CURRENT )); then continue; fi",
    '      case "$words[at]" in',
    `        ${forwardedOptions.join("|")}|-d) passed+=("$words[at]" "$words[at+1]") ;;`,
    "      esac",
    "    done",
    `    compadd -- \${(f)"$(jackdaw completion names $kind $passed 2>/dev/null)"}`,
    "    return",
    "  fi",
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
  const names = (kind: NameType) => quoted(`(__jackdaw_names ${kind})`);
  const lines = table.flatMap((command) => {
    const [first = "", second] = command.name.split(" ");
    const seen = `__fish_seen_subcommand_from ${first}`;
    const seconds = table.map(({ name }) => name.split(" ")).filter((words) => words[0] === first);
    const others = seconds.flatMap((words) => words.slice(1)).join(" ");
    const about = quoted(command.about);
    const word =
      second === undefined
        ? `complete -c jackdaw -n __fish_use_subcommand -a ${first} -d ${about}`
        : `complete -c jackdaw -n ${quoted(`${seen}; and not __fish_seen_subcommand_from ${others}`)} -f -a ${second} -d ${about}`;
    if (first === "serve") return [word, ...fishSettings(quoted)];
    const options = Object.entries(optionsOf(command)).map(([name, option]) => {
      const value = option.value === undefined ? "" : option.names === undefined ? " -r" : " -x";
      const short = option.short === undefined ? "" : ` -s ${option.short}`;
      const named = option.names === undefined ? "" : ` -a ${names(option.names)}`;
      return `complete -c jackdaw -n ${quoted(seen)} -l ${name}${short}${value}${named} -d ${quoted(option.about)}`;
    });
    const kind = command.arguments[0]?.names;
    const argument =
      kind === undefined || second === undefined
        ? []
        : [
            `complete -c jackdaw -n ${quoted(`${seen}; and __fish_seen_subcommand_from ${second}`)} -f -a ${names(kind)}`,
          ];
    const group =
      second === undefined ? [] : [`complete -c jackdaw -n __fish_use_subcommand -a ${first}`];
    return [...group, word, ...options, ...argument];
  });
  return [
    "function __jackdaw_names",
    "  set -l passed",
    "  set -l words (commandline -opc)",
    "  for at in (seq 2 (count $words))",
    `    if contains -- $words[$at] ${forwardedOptions.join(" ")} -d; and test $at -lt (count $words)`,
    "      set -a passed $words[$at] $words[(math $at + 1)]",
    "    end",
    "  end",
    "  jackdaw completion names $argv[1] $passed 2>/dev/null",
    "end",
    ...new Set(lines),
  ].join("\n");
}

function fishSettings(quoted: (text: string) => string): string[] {
  const about: Readonly<Record<string, { readonly about: string }>> = settings;
  return settingNames.map((name) => {
    const description = about[name]?.about ?? "settings file; default: settings.json";
    return `complete -c jackdaw -n '__fish_seen_subcommand_from serve' -l ${name} -r -d ${quoted(description)}`;
  });
}

function pwshScript(table: readonly Command[]): string {
  const list = (words: readonly string[]) => words.map((word) => `'${word}'`).join(", ");
  const kinds = (found: Map<NameType, string[]>) =>
    [...found].flatMap(([kind, words]) => words.map((word) => `    '${word}' = '${kind}'`));
  return [
    "Register-ArgumentCompleter -Native -CommandName jackdaw -ScriptBlock {",
    "  param($wordToComplete, $commandAst, $cursorPosition)",
    "  $followers = @{",
    ...firstWords(table).map((first) => `    '${first}' = @(${list(followers(table, first))})`),
    "  }",
    "  $optionKinds = @{",
    ...kinds(namingOptions(table)),
    "  }",
    "  $commandKinds = @{",
    ...kinds(namingCommands(table)),
    "  }",
    "  $words = @($commandAst.CommandElements | ForEach-Object { $_.ToString() })",
    "  $given = if ($wordToComplete -ne '') { $words.Count - 1 } else { $words.Count }",
    `  $first = @(${list(firstWords(table))})`,
    "  $kind = $null",
    "  if ($given -ge 1) { $kind = $optionKinds[$words[$given - 1]] }",
    "  if ($null -eq $kind -and $given -eq 3) { $kind = $commandKinds[$words[1] + ' ' + $words[2]] }",
    "  $choices = if ($given -lt 2) { $first }",
    "    elseif ($null -ne $kind) {",
    "      $passed = @()",
    "      for ($at = 1; $at -lt $given - 1; $at++) {",
    `        if ($words[$at] -in @(${list([...forwardedOptions, "-d"])})) { $passed += $words[$at], $words[$at + 1] }`,
    "      }",
    "      jackdaw completion names $kind @passed 2>$null",
    "    } else { $followers[$words[1]] }",
    '  $choices | Where-Object { $_ -like "$wordToComplete*" } | ForEach-Object { [System.Management.Automation.CompletionResult]::new($_) }',
    "}",
  ].join("\n");
}
