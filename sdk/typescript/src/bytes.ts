/* Bytes and text, with nothing but what every runtime has. */

/** What can be sent as bytes; text is sent as UTF-8. */
export type Bytes = string | Uint8Array | ArrayBuffer | Blob | ReadableStream<Uint8Array> | AsyncIterable<Uint8Array | string>;

const encoder = new TextEncoder();
const decoder = new TextDecoder();

/** @internal */
export const toBytes = (text: string): Uint8Array => encoder.encode(text);
/** @internal */
export const toText = (bytes: Uint8Array): string => decoder.decode(bytes);

/** @internal */
export function fromBase64(text: string): Uint8Array {
  return Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
}

/** @internal */
export function toBase64(bytes: Uint8Array): string {
  let text = "";
  for (let at = 0; at < bytes.length; at += 0x8000) text += String.fromCharCode(...bytes.subarray(at, at + 0x8000));
  return btoa(text);
}

/** @internal */
export function join(pieces: Uint8Array[]): Uint8Array {
  if (pieces.length === 1) return pieces[0] as Uint8Array;
  const whole = new Uint8Array(pieces.reduce((sum, piece) => sum + piece.length, 0));
  let at = 0;
  for (const piece of pieces) {
    whole.set(piece, at);
    at += piece.length;
  }
  return whole;
}

/** Whole where it is at hand, and can then be sent again; else piece by piece, once. @internal */
export function bodyOf(data: Bytes): Uint8Array | AsyncIterable<Uint8Array> {
  if (typeof data === "string") return toBytes(data);
  if (data instanceof Uint8Array) return data;
  if (data instanceof ArrayBuffer) return new Uint8Array(data);
  return pieces(data instanceof Blob ? data.stream() : data);
}

async function* pieces(data: ReadableStream<Uint8Array> | AsyncIterable<Uint8Array | string>): AsyncGenerator<Uint8Array> {
  for await (const piece of "getReader" in data ? chunksOf(data) : data) yield typeof piece === "string" ? toBytes(piece) : piece;
}

/** A stream piece by piece; canceled when the reader stops. Not every runtime iterates over streams by itself. @internal */
export async function* chunksOf(stream: ReadableStream<Uint8Array>): AsyncGenerator<Uint8Array> {
  const reader = stream.getReader();
  let isOver = false;
  try {
    for (;;) {
      const { done, value } = await reader.read();
      isOver = done;
      if (done) return;
      yield value;
    }
  } finally {
    if (!isOver) await reader.cancel().catch(() => undefined);
    reader.releaseLock();
  }
}
