package bench

import (
	"testing"

	"github.com/seed-99a027e8/informer"
)

func restOptions(option string) informer.RESTOptions {
	switch option {
	case "shared":
		return informer.RESTOptions{ShareStrings: true}
	case "leaveout":
		return informer.RESTOptions{LeaveOut: []string{"metadata.managedFields"}}
	}
	return informer.RESTOptions{}
}

// BenchmarkW6_Smaller compares live heaps. client-go has no such options.
func BenchmarkW6_Smaller(b *testing.B) {
	for _, option := range []string{"shared", "leaveout"} {
		b.Run(option, func(b *testing.B) {
			benchOverWire(b, childSpec{
				Task: "wire", Kind: "pods", Seed: standardSeed, N: pick(wired, wired/5), Mode: jsonList, Option: option,
			})
		})
	}
}
