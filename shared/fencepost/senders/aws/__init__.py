"""What every service of AWS asks of whoever calls it: keys, a signature, and a way to read its faults."""
