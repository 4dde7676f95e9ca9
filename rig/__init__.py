"""What demo, tests and benchmarks run on: a real PostgreSQL, real Lambda runtimes, a provider that misbehaves."""
