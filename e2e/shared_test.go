package e2e_test

import "testing"

// TestShared runs what needs a server but leaves it running, on one server.
// Each test has namespaces, users or custom resources of its own.
func TestShared(t *testing.T) {
	t.Parallel()
	s := startServer(t, serverOptions{
		flags: []string{"--event-ttl=20s"},
		users: []string{"alice"},
	})
	for _, test := range []struct {
		name string
		run  func(*testing.T, *server)
	}{
		{"Events", testEventsEnd},
		{"NetworkSwallows", testNetworkSwallows},
		{"NetworkCuts", testNetworkCuts},
		{"NetworkDelays", testNetworkDelays},
		{"NetworkThrottles", testNetworkThrottles},
		{"NetworkClosesOften", testNetworkClosesOften},
		{"GatewayCloses", testGatewayCloses},
		{"ServerTooBusy", testServerTooBusy},
		{"Rights", testRightsComeAndGo},
		{"CustomResource", testCustomResource},
		{"Churn", testStreamingListUnderChurn},
		{"ReadYourWrites", testReadYourWrites},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			test.run(t, s.with(t))
		})
	}
}
