/* Node before 18.18 has no Symbol.asyncDispose; compilers of `await using` make up this one. */
(Symbol as { asyncDispose?: symbol }).asyncDispose ??= Symbol.for("Symbol.asyncDispose");

export {};
