// Package bench measures this library and client-go side by side: its
// benchmarks are the rows of the table that `make bench` prints. See README.md.
package bench
