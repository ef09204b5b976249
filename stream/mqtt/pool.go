package mqtt

const (
	pooled         = 64       // items in a pool
	maxPooledBytes = 16 << 10 // bytes of an item that returns to its pool
)

// pool keeps unused items. Unlike sync.Pool it keeps them over a garbage collection,
// and never more than its capacity.
type pool[T any] chan *T

// get returns nil if the pool is empty.
func (p pool[T]) get() *T {
	select {
	case v := <-p:
		return v
	default:
		return nil
	}
}

func (p pool[T]) put(v *T) {
	select {
	case p <- v:
	default:
	}
}
