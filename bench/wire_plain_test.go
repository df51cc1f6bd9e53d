//go:build !w6

package bench

import "github.com/seed-99a027e8/informer"

func restOptions(string) informer.RESTOptions { return informer.RESTOptions{} }
