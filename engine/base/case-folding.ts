/**
 * The forms in which ids and names are looked up. They are parts of keys on disk and of the hash of an id, so they must
 * never change: the table is that of Unicode 15, and not that of the running version of Node. JavaScript's
 * `toLowerCase` is unsuitable for another reason too: it depends on the position in a word (a final capital sigma) and
 * changes the length (`İ`), so that the form of a prefix is not a prefix of the form.
 *
 * Invariants:
 * - Each UTF-16 unit is mapped independently, to one unit. Surrogates are unchanged, so well-formed text stays
 *   well-formed.
 */

/**
 * Simple lower-case mappings of units above U+007F, in hexadecimal: a unit or a range (`/2`: every second unit of it),
 * and the offset to its lower-case unit. Measured on RavenDB 7.2.7 with a document for each unit: they equal those of
 * Unicode 15, except that U+0130 (`İ`) is unchanged.
 */
const lowerTable = `
  c0-d6+32 d8-de+32 100-12e/2+1 132-136/2+1 139-147/2+1 14a-176/2+1 178-121 179-17d/2+1 181+210 182-184/2+1
  186+206 187+1 189-18a+205 18b+1 18e+79 18f+202 190+203 191+1 193+205 194+207 196+211 197+209 198+1 19c+211
  19d+213 19f+214 1a0-1a4/2+1 1a6+218 1a7+1 1a9+218 1ac+1 1ae+218 1af+1 1b1-1b2+217 1b3-1b5/2+1 1b7+219 1b8+1
  1bc+1 1c4+2 1c5+1 1c7+2 1c8+1 1ca+2 1cb-1db/2+1 1de-1ee/2+1 1f1+2 1f2-1f4/2+1 1f6-97 1f7-56 1f8-21e/2+1
  220-130 222-232/2+1 23a+10795 23b+1 23d-163 23e+10792 241+1 243-195 244+69 245+71 246-24e/2+1 370-372/2+1
  376+1 37f+116 386+38 388-38a+37 38c+64 38e-38f+63 391-3a1+32 3a3-3ab+32 3cf+8 3d8-3ee/2+1 3f4-60 3f7+1 3f9-7
  3fa+1 3fd-3ff-130 400-40f+80 410-42f+32 460-480/2+1 48a-4be/2+1 4c0+15 4c1-4cd/2+1 4d0-52e/2+1 531-556+48
  10a0-10c5+7264 10c7+7264 10cd+7264 13a0-13ef+38864 13f0-13f5+8 1c90-1cba-3008 1cbd-1cbf-3008 1e00-1e94/2+1
  1e9e-7615 1ea0-1efe/2+1 1f08-1f0f-8 1f18-1f1d-8 1f28-1f2f-8 1f38-1f3f-8 1f48-1f4d-8 1f59-1f5f/2-8
  1f68-1f6f-8 1f88-1f8f-8 1f98-1f9f-8 1fa8-1faf-8 1fb8-1fb9-8 1fba-1fbb-74 1fbc-9 1fc8-1fcb-86 1fcc-9
  1fd8-1fd9-8 1fda-1fdb-100 1fe8-1fe9-8 1fea-1feb-112 1fec-7 1ff8-1ff9-128 1ffa-1ffb-126 1ffc-9 2126-7517
  212a-8383 212b-8262 2132+28 2160-216f+16 2183+1 24b6-24cf+26 2c00-2c2f+48 2c60+1 2c62-10743 2c63-3814
  2c64-10727 2c67-2c6b/2+1 2c6d-10780 2c6e-10749 2c6f-10783 2c70-10782 2c72+1 2c75+1 2c7e-2c7f-10815
  2c80-2ce2/2+1 2ceb-2ced/2+1 2cf2+1 a640-a66c/2+1 a680-a69a/2+1 a722-a72e/2+1 a732-a76e/2+1 a779-a77b/2+1
  a77d-35332 a77e-a786/2+1 a78b+1 a78d-42280 a790-a792/2+1 a796-a7a8/2+1 a7aa-42308 a7ab-42319 a7ac-42315
  a7ad-42305 a7ae-42308 a7b0-42258 a7b1-42282 a7b2-42261 a7b3+928 a7b4-a7c2/2+1 a7c4-48 a7c5-42307 a7c6-35384
  a7c7-a7c9/2+1 a7d0+1 a7d6-a7d8/2+1 a7f5+1 ff21-ff3a+32
`;

/** Lower-case letters that have the same capital as the first one. */
const sameCapitals =
  "\u03bc\u00b5 \u03b9\u0345\u1fbe \u03b2\u03d0 \u03b5\u03f5 \u03b8\u03d1 \u03ba\u03f0 \u03c0\u03d6 \u03c1\u03f1 \u03c3\u03c2 \u03c6\u03d5 " +
  "\u0432\u1c80 \u0434\u1c81 \u043e\u1c82 \u0441\u1c83 \u0442\u1c84\u1c85 \u044a\u1c86 \u0463\u1c87 \ua64b\u1c88 \u1e61\u1e9b";
/** Capitals that are not the capital of their lower-case letter: `\u1e9e`, the theta symbol, ohm, kelvin and angstrom. */
const otherCapitals = "\u1e9e\u03f4\u2126\u212a\u212b";

const nonAscii = /[^\0-\x7f]/;
let lowerUnits: Uint16Array | undefined;
let nameUnits: Uint16Array | undefined;

/**
 * Returns the form of ids of documents, names of counters, attachments and time series, and keys. Cost: as
 * `toLowerCase` for ASCII.
 */
export function lowerCased(id: string): string {
  if (!nonAscii.test(id)) return id.toLowerCase();
  lowerUnits ??= buildLowerUnits();
  return mapped(id, lowerUnits);
}

/**
 * Returns the form of names of databases, collections and indexes. Two are the same if their capital letters are, as in
 * .NET's `OrdinalIgnoreCase`: unlike with ids, both small letters sigma are one.
 */
export function foldedName(name: string): string {
  if (!nonAscii.test(name)) return name.toLowerCase();
  nameUnits ??= buildNameUnits();
  return mapped(name, nameUnits);
}

function buildLowerUnits(): Uint16Array {
  const units = Uint16Array.from({ length: 0x10000 }, (_, unit) =>
    unit >= 0x41 && unit <= 0x5a ? unit + 32 : unit,
  );
  for (const run of lowerTable.trim().split(/\s+/)) {
    const [, first, last = first, step, delta] =
      /^([0-9a-f]+)(?:-([0-9a-f]+)(\/2)?)?([+-]\d+)$/.exec(run) ?? [];
    const end = Number.parseInt(last as string, 16);
    for (let unit = Number.parseInt(first as string, 16); unit <= end; ) {
      units[unit] = unit + Number(delta);
      unit += step === undefined ? 1 : 2;
    }
  }
  return units;
}

function buildNameUnits(): Uint16Array {
  const units = buildLowerUnits();
  for (const letters of sameCapitals.split(" ")) {
    for (let at = 1; at < letters.length; at++) {
      units[letters.charCodeAt(at)] = letters.charCodeAt(0);
    }
  }
  for (let at = 0; at < otherCapitals.length; at++) {
    units[otherCapitals.charCodeAt(at)] = otherCapitals.charCodeAt(at);
  }
  return units;
}

function mapped(text: string, units: Uint16Array): string {
  let result = "";
  for (let at = 0; at < text.length; at++) {
    result += String.fromCharCode(units[text.charCodeAt(at)] as number); // there is one for each unit
  }
  return result;
}
