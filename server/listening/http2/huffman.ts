/**
 * Decodes the Huffman code of header strings (RFC 7541, 5.2 and appendix B), four bits a step. The code is canonical: it
 * follows from the lengths of its words, which are all that is written down here.
 */

/** The length in bits of each byte's word: `a` is 5, `z` is 30. */
const wordLengths =
  "isxxxxxxxtzxxzxxxxxxxxzxxxxxxxxxbffhibdgffdgdbbbaaabbbbbbbcdkbhf" +
  "ibccccccccccccccccccccccdcdioijbkabababbbaccbbbabcbaabccccckgjix" +
  "prpprrrsrssssststtrstssssqrsrsstrqprrssqsrrtqrssqqrqsrssprrrsrrs" +
  "vvporsruvvvwwvtuoqvwwvwtqqvvxwwwptpqrqqsrruuttvsvwvvwwwwwxwwwwwv";
/** Bits of the word that ends a string, which is never sent whole. */
const endLength = 30;
const endSymbol = 256;

/** What a step does besides going to the next state (its low 8 bits): it yields a byte (bits 8 to 15), or fails. */
const yields = 1 << 16;
const fails = 1 << 17;

/** By state and the next four bits. A state is an inner node of the tree; 0 is its root. */
const steps = new Int32Array(256 * 16);
/** States in which a string may end: fewer than eight bits were read since the last byte, all of them ones. */
const mayEnd = new Uint8Array(256);
makeSteps();

function makeSteps(): void {
  const tree = makeTree();
  for (let state = 0; state < 256; state++) {
    for (let bits = 0; bits < 16; bits++) steps[state * 16 + bits] = stepOf(tree, state, bits);
  }
  let state = 0;
  for (let depth = 0; depth < 8; depth++) {
    mayEnd[state] = 1;
    state = tree[state * 2 + 1] ?? 0;
  }
}

/** The two children of each inner node: the number of another, or -1 - the byte of a leaf. */
function makeTree(): Int32Array {
  const lengths = [...wordLengths].map((letter) => letter.charCodeAt(0) - 92);
  lengths[endSymbol] = endLength;
  const order = [...lengths.keys()].sort((a, b) => at(lengths, a) - at(lengths, b) || a - b);
  const tree = new Int32Array(256 * 2);
  let nodes = 1;
  let word = 0;
  let length = at(lengths, order[0] ?? 0);
  for (const symbol of order) {
    word *= 2 ** (at(lengths, symbol) - length);
    length = at(lengths, symbol);
    let node = 0;
    for (let bit = length - 1; bit > 0; bit--) {
      const child = node * 2 + ((word >>> bit) & 1);
      if (tree[child] === 0) tree[child] = nodes++;
      node = tree[child] ?? 0;
    }
    tree[node * 2 + (word & 1)] = -1 - symbol;
    word++;
  }
  return tree;
}

function at(numbers: readonly number[], position: number): number {
  return numbers[position] ?? 0;
}

function stepOf(tree: Int32Array, from: number, bits: number): number {
  let state = from;
  let byte = 0;
  for (let bit = 3; bit >= 0; bit--) {
    const child = tree[state * 2 + ((bits >> bit) & 1)] ?? 0;
    if (child === -1 - endSymbol) return fails;
    if (child < 0) byte = yields | ((-1 - child) << 8);
    state = Math.max(child, 0);
  }
  return byte | state;
}

let decoded = Buffer.allocUnsafeSlow(4096);

/** The string in Latin-1 whose code is in `bytes`; undefined: it is not valid. Hot. */
export function decodeHuffman(bytes: Buffer, start: number, end: number): string | undefined {
  // The shortest words have five bits.
  const lengthMax = Math.floor(((end - start) * 8) / 5);
  if (lengthMax > decoded.length) decoded = Buffer.allocUnsafeSlow(2 * lengthMax);
  const out = decoded;
  let length = 0;
  let step = 0;
  for (let position = start; position < end; position++) {
    const byte = bytes[position] as number;
    step = steps[(step & 255) * 16 + (byte >> 4)] as number;
    if (step >= yields) {
      if (step >= fails) return undefined;
      out[length++] = (step >> 8) & 255;
    }
    step = steps[(step & 255) * 16 + (byte & 15)] as number;
    if (step >= yields) {
      if (step >= fails) return undefined;
      out[length++] = (step >> 8) & 255;
    }
  }
  return mayEnd[step & 255] === 1 ? out.latin1Slice(0, length) : undefined;
}
