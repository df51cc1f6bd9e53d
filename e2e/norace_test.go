//go:build !race

package e2e_test

// raceDetector says that times mean little.
const raceDetector = false
