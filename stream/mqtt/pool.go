package mqtt

const (
	pooled         = 64       // items in a Pool
	maxPooledBytes = 16 << 10 // bytes of a message that returns to its pool
)

// Pool keeps unused items. Unlike sync.Pool it keeps them over a garbage collection,
// and never more than its capacity.
type Pool[T any] chan *T

// NewPool returns an empty pool.
func NewPool[T any]() Pool[T] { return make(Pool[T], pooled) }

// Get returns nil if the pool is empty.
func (p Pool[T]) Get() *T {
	select {
	case v := <-p:
		return v
	default:
		return nil
	}
}

// Put drops an item for which there is no room.
func (p Pool[T]) Put(v *T) {
	select {
	case p <- v:
	default:
	}
}
