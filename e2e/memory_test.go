package e2e_test

import (
	"fmt"
	"os"
	"strings"
)

// residentMemory returns the server's memory as Linux reports it, or "unknown".
func residentMemory(s *server) string {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", s.process.pid()))
	if err != nil {
		return "unknown"
	}
	for line := range strings.Lines(string(status)) {
		if kb, found := strings.CutPrefix(line, "VmRSS:"); found {
			return strings.TrimSpace(kb)
		}
	}
	return "unknown"
}
