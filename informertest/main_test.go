package informertest_test

import (
	"testing"

	"go.uber.org/goleak"
)

// TestMain fails the run if a test leaves a goroutine behind (promise 29).
func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }
