//go:build race

package informer_test

// raceEnabled says that the race detector slows everything down.
const raceEnabled = true
