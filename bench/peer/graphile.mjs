// graphile-worker: local queue, batched completion. Deletes what is done: records no outcome.
import { createRequire } from "node:module";
import { Count, awaitWord, payload } from "./count.mjs";

const { run, makeWorkerUtils, Logger } = createRequire(process.env.PEERS + "/")("graphile-worker");
const [verb, url, given] = process.argv.slice(2);
const number = Number(given);
const CHUNK = 5000;
const logger = new Logger(() => () => {});

async function fill() {
  const utils = await makeWorkerUtils({ connectionString: url, logger });
  await utils.migrate();
  for (let start = 0; start < number; start += CHUNK) {
    const count = Math.min(CHUNK, number - start);
    await utils.addJobs(Array.from({ length: count }, (_, i) => ({ identifier: "noop", payload: payload(start + i) })));
  }
  await utils.release();
}

async function work() {
  await awaitWord();
  const count = new Count();
  count.tell();
  await run({
    connectionString: url,
    logger,
    noHandleSignals: true,
    taskList: { noop: () => count.hit() },
    preset: {
      worker: { concurrentJobs: 24, maxPoolSize: 10, pollInterval: 100, localQueue: { size: number }, completeJobBatchDelay: 0, failJobBatchDelay: 0 },
    },
  });
}

await (verb === "fill" ? fill() : work());
