package dense_test

import (
	"fmt"

	"edge/model/dense"
)

func ExampleCholesky() {
	a := []float64{4, 0, 2, 5} // 2×2, lower triangle
	fmt.Println(dense.Cholesky(2, a, 2), a[0], a[2], a[3])
	b := []float64{2, 5} // a row: b·L⁻ᵀ solves L·x = b
	dense.SolveTriTrans(1, 2, a, 2, b, 2)
	fmt.Println(b)
	// Output:
	// true 2 1 2
	// [1 2]
}
