"""`make sam-local`: every event of events/ through `sam local`, judged by what was answered, written and received."""
