package informer_test

import (
	"fmt"
	"os"
	"testing"

	"go.uber.org/goleak"
)

// TestMain fails the run if a test leaves a goroutine behind (promise 29), or if
// a canary has been seen where none may be.
func TestMain(m *testing.M) {
	// Clients log to the standard error.
	stderr := os.Stderr
	logs, err := os.CreateTemp("", "informer-test-stderr")
	if err != nil {
		panic(err)
	}
	os.Stderr = logs
	goleak.VerifyTestMain(m, goleak.Cleanup(func(code int) {
		text, err := os.ReadFile(logs.Name())
		_ = os.Remove(logs.Name())
		_, _ = stderr.Write(text)
		seen.look("standard error", string(text))
		if leaks := seen.found(); err != nil || len(leaks) > 0 {
			fmt.Fprintln(stderr, "a canary was seen:", err, leaks)
			code = max(code, 1)
		}
		os.Exit(code)
	}))
}
