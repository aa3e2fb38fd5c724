// The two parts of node's test runner that the tests use; the full types are not worth a package.
declare module "node:test" {
  export default function test(name: string, run: () => void | Promise<void>): void;
}
declare module "node:assert/strict" {
  const assert: {
    equal(actual: unknown, expected: unknown): void;
    deepEqual(actual: unknown, expected: unknown): void;
    throws(run: () => void): void;
  };
  export default assert;
}
