// pg-boss: fetch and complete by hand, the fastest it offers. Keeps what is done with its state.
import { createRequire } from "node:module";
import { Count, awaitWord, payload } from "./count.mjs";

const { PgBoss } = createRequire(process.env.PEERS + "/")("pg-boss");
const [verb, url, given] = process.argv.slice(2);
const number = Number(given);
const CHUNK = 5000;

async function started() {
  const boss = new PgBoss({ connectionString: url, supervise: false, schedule: false });
  boss.on("error", (error) => console.error(error));
  await boss.start();
  return boss;
}

async function fill() {
  const boss = await started();
  await boss.createQueue("noop");
  for (let start = 0; start < number; start += CHUNK) {
    const count = Math.min(CHUNK, number - start);
    await boss.insert("noop", Array.from({ length: count }, (_, i) => ({ data: payload(start + i) })));
  }
  await boss.stop({ graceful: false });
}

async function work() {
  const boss = await started();
  await awaitWord();
  const count = new Count();
  count.tell();
  for (;;) {
    const jobs = await boss.fetch("noop", { batchSize: number });
    if (jobs.length === 0) return;
    await boss.complete("noop", jobs.map((job) => job.id));
    count.hit(jobs.length);
  }
}

await (verb === "fill" ? fill() : work());
