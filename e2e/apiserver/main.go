//go:build !race

// Command apiserver runs one kube-apiserver and its etcd in one process, on
// loopback only, for the tests of this module.
//
// Its state is the data directory: etcd's files, the serving certificate and
// the key that signs service account tokens. Started again on the same
// directory, it goes on where it was left.
//
// It speaks on standard error alone. SIGTERM stops it gracefully, SIGKILL is a
// crash, and the end of standard input ends it at once: a parent that holds
// the other end of that pipe takes its server with it, however it dies.
//
// The build constraint keeps `go test -race ./...` from building all of
// Kubernetes a second time: only the tests are to run under the race detector.
package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"net/url"
	"os"
	"path/filepath"
	"time"

	"go.etcd.io/etcd/server/v3/embed"
	"k8s.io/component-base/cli"
	"k8s.io/kubernetes/cmd/kube-apiserver/app"
)

// etcdStart bounds the time that etcd has to open its data and elect itself.
const etcdStart = time.Minute

// config is what the command line says.
type config struct {
	dataDir  string
	port     int      // of kube-apiserver
	etcdPort int      // of etcd's client API
	flags    []string // given to kube-apiserver after our own, so they win
}

func main() {
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		os.Exit(1)
	}()
	conf, err := parse(os.Args[1:])
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(2)
	}
	code, err := run(conf)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
	os.Exit(code)
}

// parse reads the command line; what follows a "--" is for kube-apiserver.
func parse(args []string) (config, error) {
	var conf config
	set := flag.NewFlagSet("apiserver", flag.ContinueOnError)
	set.StringVar(&conf.dataDir, "data-dir", "", "directory that holds all state")
	set.IntVar(&conf.port, "port", 0, "loopback port of kube-apiserver")
	set.IntVar(&conf.etcdPort, "etcd-port", 0, "loopback port of etcd")
	if err := set.Parse(args); err != nil {
		return config{}, err
	}
	if conf.dataDir == "" || conf.port == 0 || conf.etcdPort == 0 {
		return config{}, errors.New("-data-dir, -port and -etcd-port are required")
	}
	conf.flags = set.Args()
	return conf, nil
}

// run serves until a signal comes, then ends kube-apiserver before its etcd.
// It returns the exit code of the process.
func run(conf config) (int, error) {
	etcd, err := startEtcd(conf)
	if err != nil {
		return 1, err
	}
	defer etcd.Close()
	flags, err := apiserverFlags(conf)
	if err != nil {
		return 1, err
	}
	command := app.NewAPIServerCommand()
	command.SetArgs(flags)
	return cli.Run(command), nil
}

// startEtcd returns a single-member etcd that serves, or why there is none.
func startEtcd(conf config) (*embed.Etcd, error) {
	// Nobody dials the only member of a cluster, so any port does for peers.
	peer := url.URL{Scheme: "http", Host: "127.0.0.1:0"}
	client := url.URL{Scheme: "http", Host: fmt.Sprintf("127.0.0.1:%d", conf.etcdPort)}

	c := embed.NewConfig()
	c.Dir = filepath.Join(conf.dataDir, "etcd")
	c.ListenPeerUrls, c.AdvertisePeerUrls = []url.URL{peer}, []url.URL{peer}
	c.ListenClientUrls, c.AdvertiseClientUrls = []url.URL{client}, []url.URL{client}
	c.InitialCluster = c.InitialClusterFromName(c.Name)
	c.LogLevel = "error"
	c.LogOutputs = []string{"stderr"}
	// A killed process loses nothing that it wrote, only a dead machine does;
	// and a member that is alone has nobody to wait for in an election.
	c.UnsafeNoFsync = true
	c.TickMs, c.ElectionMs = 10, 100

	etcd, err := embed.StartEtcd(c)
	if err != nil {
		return nil, fmt.Errorf("etcd: %w", err)
	}
	select {
	case <-etcd.Server.ReadyNotify():
		return etcd, nil
	case err := <-etcd.Err():
		etcd.Close()
		return nil, fmt.Errorf("etcd: %w", err)
	case <-time.After(etcdStart):
		etcd.Close()
		return nil, fmt.Errorf("etcd: not ready after %v", etcdStart)
	}
}

// apiserverFlags returns the command line of kube-apiserver.
func apiserverFlags(conf config) ([]string, error) {
	key := filepath.Join(conf.dataDir, "service-account.key")
	if err := ensureKey(key); err != nil {
		return nil, err
	}
	flags := []string{
		fmt.Sprintf("--etcd-servers=http://127.0.0.1:%d", conf.etcdPort),
		"--etcd-compaction-interval=0", // only a test compacts
		"--bind-address=127.0.0.1",
		fmt.Sprintf("--secure-port=%d", conf.port),
		"--cert-dir=" + filepath.Join(conf.dataDir, "certs"),
		"--token-auth-file=" + filepath.Join(conf.dataDir, "tokens.csv"),
		"--authorization-mode=RBAC",
		"--service-account-issuer=https://127.0.0.1",
		"--service-account-signing-key-file=" + key,
		"--service-account-key-file=" + key,
		"--service-cluster-ip-range=10.0.0.0/24",
		"--endpoint-reconciler-type=none",
		// Without it, a graceful stop would wait a minute for open watches.
		"--shutdown-watch-termination-grace-period=10s",
		// No controller makes the default service account that pods would need.
		"--disable-admission-plugins=ServiceAccount",
	}
	return append(flags, conf.flags...), nil
}
