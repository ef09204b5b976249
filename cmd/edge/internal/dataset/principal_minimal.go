//go:build minimal || noplots

package dataset

// InComponents is left out of the binaries for devices, with its eigenvalues.
func InComponents(int, *Part, *Part) (_, _ *Part, err error) {
	return nil, nil, ErrLeftOut
}
