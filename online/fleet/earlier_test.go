package fleet

import (
	"math"
	"os"
	"slices"
	"testing"
)

// Contributions of builds from 23 to 29 November, one of each format, in which a member taught two
// features and three classes. The files are never written again: later programs have to read them.
func TestEarlierContributions(t *testing.T) {
	for name, format := range map[string]struct {
		magic  string
		forest bool
	}{
		"efc1": {magic, false}, "efc2": {forestMagic, true}, "efc3": {partsMagic, true}, "efc4": {packedMagic, true},
	} {
		data, err := os.ReadFile("testdata/" + name + ".contribution")
		if err != nil {
			t.Fatal(err)
		}
		if string(data[:4]) != format.magic {
			t.Errorf("%s begins with %q", name, data[:4])
		}
		c, err := Decode(data)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if c.Member != "pi2" || c.N != 70 || !slices.Equal(c.Classes, []string{"c", "b", "a"}) || !slices.Equal(c.Counts, []uint64{24, 25, 21}) ||
			!slices.Equal(c.Horizons, []float64{math.Inf(1)}) || c.Params.M != 4 || c.Params.D != 2 || (len(c.forest) > 0) != format.forest {
			t.Errorf("%s: %d samples of %s, classes %v %v, horizons %v, %d inducing points in %d dimensions, %d bytes of a forest",
				name, c.N, c.Member, c.Classes, c.Counts, c.Horizons, c.Params.M, c.Params.D, len(c.forest))
		}
		again, err := c.AppendBinary(nil)
		if err != nil {
			t.Errorf("%s: to publish it in the present format: %v", name, err)
		}
		if _, err := Decode(again); err != nil {
			t.Errorf("%s: from the present format: %v", name, err)
		}
	}
}
