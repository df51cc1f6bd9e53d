package informer

// Followers returns how many handlers are told of changes.
func Followers[T Object](inf *Informer[T]) (n int) {
	inf.store.between(func(*state[T]) { n = len(inf.fan.followers) })
	return n
}
