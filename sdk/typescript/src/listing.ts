/* Lists, page by page. */

/** A page of a list. */
export interface Page<T> {
  /** The entries of this page. */
  items: T[];
  /** Where the next page begins; null: this is the last one. */
  nextCursor: string | null;
}

/** A list: `await` gives all entries as an array, `for await` one after the other, with pages fetched as they are needed. */
export class Listing<T> implements AsyncIterable<T>, PromiseLike<T[]> {
  /** @internal */
  constructor(private readonly fetchPage: (cursor: string | undefined) => Promise<Page<T>>) {}

  /** One page: the first, or that at the cursor. */
  page(cursor?: string): Promise<Page<T>> {
    return this.fetchPage(cursor);
  }

  /** What `await` calls: fetches all entries. */
  then<A = T[], B = never>(
    done?: ((items: T[]) => A | PromiseLike<A>) | null,
    failed?: ((reason: unknown) => B | PromiseLike<B>) | null,
  ): Promise<A | B> {
    const all = async () => {
      const items: T[] = [];
      for await (const item of this) items.push(item);
      return items;
    };
    return all().then(done, failed);
  }

  /** Entry after entry. */
  async *[Symbol.asyncIterator](): AsyncGenerator<T, void, undefined> {
    let cursor: string | undefined;
    do {
      const page = await this.fetchPage(cursor);
      yield* page.items;
      cursor = page.nextCursor ?? undefined;
    } while (cursor !== undefined);
  }
}
