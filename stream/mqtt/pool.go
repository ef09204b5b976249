package mqtt

const (
	pooled         = 64       // things that a pool keeps
	maxPooledBytes = 16 << 10 // bytes of one of them, at most
)

// pool keeps things whose memory is free again. Other than sync.Pool it keeps as
// many after a collection of garbage, and never more.
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
