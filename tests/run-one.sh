#!/bin/bash
# Runs one test for prove: cmocka 1.1.5 prints a skipped test as "not ok N # SKIP NAME", which prove takes for a failure.
"$@" 2>&1 | sed -uE 's/^not ok ([0-9]+) # SKIP/ok \1 # SKIP/'
exit "${PIPESTATUS[0]}"
