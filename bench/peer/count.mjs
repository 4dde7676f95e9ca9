// What a peer's worker tells (see count.py): how many it was called for, and when first and last.
import { createInterface } from "node:readline";

const seconds = () => Number(process.hrtime.bigint()) / 1e9; // CLOCK_MONOTONIC

export class Count {
  done = 0;
  first = 0;
  last = 0;

  hit(number = 1) {
    this.last = seconds();
    this.first ||= this.last;
    this.done += number;
  }

  tell() {
    setInterval(() => say({ progress: this.done, first: this.first, last: this.last }), 50);
  }
}

export function payload(number) {
  return { title: `Order ${number} has left`, body: "x".repeat(250) };
}

export async function awaitWord() {
  const lines = createInterface({ input: process.stdin });
  lines.on("close", () => process.exit(0)); // the end of our input is the end of us
  say({ ready: true });
  await new Promise((begin) => lines.once("line", begin));
}

function say(what) {
  process.stdout.write(JSON.stringify(what) + "\n");
}
