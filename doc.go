// Package informer keeps an in-memory, indexed copy of one kind of Kubernetes
// object up to date, and tells handlers what changed.
package informer
