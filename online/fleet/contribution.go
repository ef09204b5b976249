package fleet

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"unicode/utf8"

	"edge/model"
	"edge/model/dense"
	"edge/online/wire"
)

// Errors that a caller may branch on.
var (
	// ErrContribution: bytes are not a contribution of this version, are damaged, or
	// hold a value out of range.
	ErrContribution = errors.New("not a valid contribution")
	// ErrMerge: bytes are not a merge, or are damaged.
	ErrMerge = errors.New("not a valid merge")
)

// magic opens a contribution; its last digit is the version of the format.
const magic = "EFC1"

// forestMagic opens a contribution with a forest, which is behind the sites; partsMagic one
// that ends with parts, each of a name and a block.
const (
	forestMagic = "EFC2"
	partsMagic  = "EFC3"
)

// Names of the parts of a contribution, and of the sections of a merge.
const (
	forestsName   = "forests"
	fieldsName    = "forest by field" // see appendFields; the sites hold for a program that does not know it
	exponentsName = "exponents"
)

// Bounds of a contribution. Those of an edge model are narrower.
const (
	MaxBytes    = 16 << 20 // of an encoded contribution
	MaxName     = 256      // bytes of a member's or class's name
	maxInducing = 1000
	maxFeatures = 10_000
	maxHorizons = 8
	maxEps      = 0.5       // label noise
	maxInput    = 1e6       // magnitude of a standardised inducing input
	maxNumber   = 1e9       // magnitude of a number of the sites
	ridge       = 1. / 1024 // added to the diagonal of a precision before its factor is taken
)

// Version orders the contributions of one member. Epoch rises with every start of the
// member, Sequence with every publication.
type Version struct{ Epoch, Sequence uint64 }

// Newer reports whether v comes after o.
func (v Version) Newer(o Version) bool {
	return v.Epoch > o.Epoch || v.Epoch == o.Epoch && v.Sequence > o.Sequence
}

// Header identifies a contribution.
type Header struct {
	Member   string // name
	Instance uint64 // of its process
	Version
	BasisEpoch uint64    // Birth.ID of a common basis; 0: its own
	Features   uint64    // see the function Features
	N          uint64    // labels learnt
	Classes    []string  // that have a latent function, in its order
	Counts     []uint64  // labels learnt of each class
	Horizons   []float64 // lengths in observations; +Inf never forgets
	Weights    []float64 // of the horizons in the member's answers, 0 to 1
}

// Contribution holds the parameters that the labels of one member have taught it. It is
// immutable once it is in a Set. The numbers are kept as they are in a message before it is packed, see Held.
//
// Of each horizon and class it holds the Cholesky factor R of A + ridge·I and β = R⁻¹b.
// Whatever its rounding is, R·Rᵀ is positive semi-definite; that of A itself would make
// its small eigenvalues negative.
type Contribution struct {
	Header
	Basis
	Precision Precision
	sites     []byte    // H×C×(M(M+1)/2 + M) numbers: the rows of R's lower triangle, β
	forest    []byte    // of the same classes, see encodeForest; none: the member has no forest
	exponents []byte    // see SetExponents; none: it has none yet
	scratch   []float64 // M×M, of Put
}

// New returns a contribution of a header and a basis, without sites: Put adds those of
// each horizon and class. The basis is rounded to 32 bits.
func New(h Header, b Basis, p Precision) *Contribution {
	c := &Contribution{Header: h, Basis: b.rounded(), Precision: p}
	c.sites = make([]byte, len(h.Horizons)*len(h.Classes)*c.siteBytes())
	return c
}

// siteBytes is the size of the sites of one horizon and class.
func (c *Contribution) siteBytes() int {
	m := c.Params.M
	return (m*(m+1)/2 + m) * c.Precision.Bytes()
}

// site returns the memory of the sites of horizon h and class k.
func (c *Contribution) site(h, k int) []byte {
	size := c.siteBytes()
	at := (h*len(c.Classes) + k) * size
	return c.sites[at : at+size]
}

// Put stores the sites of horizon h and class k. The error is model.ErrFactor for a
// precision that is not positive semi-definite, ErrContribution for one that is too
// large. Numbers of 16 bits are rounded to multiples of siteUnit before.
//
//	a  M×M, lower triangle: A; it is overwritten
//	b  M; it is overwritten
//
// Rounding changes A, and b is changed with it, so that the mean µ of the member's posterior
// stays:
//
//	µ = (I + A)⁻¹b,  (I + R·Rᵀ)µ = R·β,  β = R⁻¹µ + Rᵀµ
func (c *Contribution) Put(h, k int, a, b []float64) error {
	m := c.Params.M
	c.scratch = sized(c.scratch, m*m)
	p, mu, sum := c.scratch, b, c.scratch[:m]
	copy(p, a)
	for i := range m {
		p[i*m+i]++
		a[i*m+i] += ridge
	}
	if !dense.Cholesky(m, p, m) || !dense.Cholesky(m, a, m) {
		return fmt.Errorf("fleet: factor the precision of class %.40q, horizon %g: %w", c.Classes[k], c.Horizons[h], model.ErrFactor)
	}
	dense.SolveTriTrans(1, m, p, m, mu, m)
	dense.SolveTri(1, m, p, m, mu, m)
	data := c.site(h, k)
	clear(sum)
	for i := range m { // Rᵀµ
		row := a[i*m : i*m+i+1]
		data = c.Precision.storeFactor(data, row, siteUnit(m))
		dense.Axpy(mu[i], row, sum)
	}
	dense.SolveTriTrans(1, m, a, m, b, m)
	for i := range m {
		b[i], data = c.Precision.store(data, b[i]+sum[i])
		if !(math.Abs(b[i]) <= maxNumber && a[i*m+i] <= maxNumber) {
			return fmt.Errorf("fleet: sites of class %.40q, horizon %g, are too large: %w", c.Classes[k], c.Horizons[h], ErrContribution)
		}
	}
	return nil
}

// Factor stores the sites of horizon h and class k as the contribution holds them.
//
//	r  M×M, lower triangle: the factor R; the rest is not written
//	b  M: R·β
func (c *Contribution) Factor(h, k int, r, b []float64) {
	m := c.Params.M
	data := c.site(h, k)
	for i := range m {
		data = c.Precision.numbers(r[i*m:i*m+i+1], data)
	}
	c.Precision.numbers(b[:m], data)
	for i := m - 1; i >= 0; i-- {
		b[i] = dense.Dot(r[i*m:i*m+i+1], b[:i+1])
	}
}

// trace is the sum of the diagonal of A of horizon h over all classes.
func (c *Contribution) trace(h int) (sum float64) {
	for k := range c.Classes {
		data := c.site(h, k)
		for range c.Params.M * (c.Params.M + 1) / 2 {
			var v float64
			v, data = c.Precision.number(data)
			sum += float64(v * v)
		}
	}
	return sum
}

// AppendBinary appends the encoded contribution, packed. The error is ErrContribution for one
// that Decode would refuse.
func (c *Contribution) AppendBinary(dst []byte) ([]byte, error) {
	plain := c.plain()
	if _, err := decode(plain); err != nil {
		return dst, err
	}
	return pack(dst, plain, c.Precision), nil
}

// plain returns the encoded contribution before it is packed.
func (c *Contribution) plain() []byte {
	opening, parts := c.encodeParts()
	e := &wire.Encoder{Buf: append(make([]byte, 0, c.Held()+4096), opening...)}
	c.encodeHeader(e)
	c.encodeBasis(e)
	e.Buf = append(append(e.Buf, c.sites...), parts...)
	return wire.AppendChecksum(e.Buf, 0)
}

// Held is about the number of bytes of memory that the contribution takes.
func (c *Contribution) Held() int {
	return len(c.sites) + len(c.forest) + len(c.exponents) + 8*(len(c.Params.Theta)+len(c.Scale.Mu)+len(c.Scale.Sd)+len(c.Scale.Ranks))
}

// encodeParts returns the parts behind the sites, and the magic of a message with them.
func (c *Contribution) encodeParts() (opening string, parts []byte) {
	var e, fields wire.Encoder
	if len(c.forest) > 0 && appendFields(&fields, c.forest, len(c.Classes)) {
		e.String(fieldsName)
		e.Block(fields.Buf)
	} else if len(c.forest) > 0 && len(c.exponents) > 0 {
		e.String(forestsName)
		e.Block(c.forest)
	} else if len(c.forest) > 0 {
		return forestMagic, c.forest
	}
	if len(c.exponents) > 0 {
		e.String(exponentsName)
		e.Block(c.exponents)
	}
	if len(e.Buf) == 0 {
		return magic, nil
	}
	return partsMagic, e.Buf
}

// encodeHeader appends the header.
func (c *Contribution) encodeHeader(e *wire.Encoder) {
	e.String(c.Member)
	e.Uint64(c.Instance)
	e.Uint64(c.Epoch)
	e.Uint64(c.Sequence)
	e.Uint64(c.BasisEpoch)
	e.Uint64(c.Features)
	e.Uint(c.N)
	encodeCounts(e, c.Classes, c.Counts)
	e.Int(len(c.Horizons))
	e.Floats(c.Horizons)
	for _, v := range c.Weights {
		e.Float32(v)
	}
}

// encodeCounts appends classes with the labels of each.
func encodeCounts(e *wire.Encoder, classes []string, counts []uint64) {
	e.Int(len(classes))
	for k, name := range classes {
		e.String(name)
		e.Uint(counts[k])
	}
}

// encodeBasis appends the basis, with its sizes and the precision.
func (c *Contribution) encodeBasis(e *wire.Encoder) {
	e.Int(c.Params.M)
	e.Int(c.Params.D)
	e.Uint(uint64(c.Precision))
	c.Basis.encodeShort(e)
}

// newDecoder returns a decoder of the bytes between magic and checksum.
func newDecoder(data []byte, magic, what string, kind error) (*wire.Decoder, error) {
	if len(data) < len(magic)+wire.ChecksumBytes || string(data[:len(magic)]) != magic {
		return nil, fmt.Errorf("fleet: %s does not begin with %s: %w", what, magic, kind)
	}
	body, ok := wire.CutChecksum(data)
	if !ok {
		return nil, fmt.Errorf("fleet: checksum of the %s differs: %w", what, kind)
	}
	return wire.NewDecoder(body[len(magic):], "fleet: "+what+": ", kind), nil
}

// Decode returns the contribution that AppendBinary encoded, or one that an earlier program
// did and that is not packed. Every length is checked against that of data before memory is
// made, every number is checked, and anything else is ErrContribution.
func Decode(data []byte) (*Contribution, error) {
	if len(data) > MaxBytes {
		return nil, fmt.Errorf("fleet: %d bytes, at most %d: %w", len(data), MaxBytes, ErrContribution)
	}
	if len(data) > len(packedMagic) && bytes.HasPrefix(data, []byte("EFC")) && data[3] > packedMagic[3] && data[3] <= '9' {
		return nil, fmt.Errorf("fleet: contribution of format %s, this program reads %s to %s: use the program that has written it here as well: %w", data[:4], magic, packedMagic, ErrContribution)
	}
	if bytes.HasPrefix(data, []byte(packedMagic)) {
		var err error
		if data, err = unpack(data); err != nil {
			return nil, err
		}
	}
	return decode(data)
}

// decode returns a contribution that is not packed. It keeps a copy of data's numbers.
func decode(data []byte) (*Contribution, error) {
	if len(data) > MaxBytes {
		return nil, fmt.Errorf("fleet: %d bytes before they are packed, at most %d: %w", len(data), MaxBytes, ErrContribution)
	}
	opening := ""
	for _, known := range [...]string{magic, forestMagic, partsMagic} {
		if bytes.HasPrefix(data, []byte(known)) {
			opening = known
		}
	}
	if opening == "" {
		return nil, fmt.Errorf("fleet: contribution does not begin with %s to %s: %w", magic, packedMagic, ErrContribution)
	}
	d, err := newDecoder(data, opening, "contribution", ErrContribution)
	if err != nil {
		return nil, err
	}
	c := &Contribution{}
	c.decodeHeader(d)
	c.decodeBasis(d)
	numbers := c.decodeSites(d, opening == magic)
	switch opening {
	case forestMagic:
		c.decodeForest(d, d.Bytes(d.Len(), "forest"))
	case partsMagic:
		for d.Err() == nil && d.Len() > 0 {
			c.decodePart(d)
		}
	}
	if err := d.End(); err != nil {
		return nil, err
	}
	if err := c.check(); err != nil {
		return nil, err
	}
	c.sites = bytes.Clone(numbers)
	return c, c.checkSites()
}

// decodeSites returns the sites, which alias the data; last: nothing follows them. The bytes that are
// announced may be more than an int of 32 bits counts.
func (c *Contribution) decodeSites(d *wire.Decoder, last bool) []byte {
	if d.Err() != nil {
		return nil
	}
	sites, left := int64(len(c.Horizons)*len(c.Classes))*int64(c.siteBytes()), int64(d.Len())
	if left < sites || last && left > sites {
		d.Fail("%d bytes of sites, %d are announced", left, sites)
		return nil
	}
	return d.Bytes(int(sites), "sites")
}

// decodePart reads a part. One that this program does not know is passed over: the others
// hold without it.
func (c *Contribution) decodePart(d *wire.Decoder) {
	name := d.String(MaxName)
	data := d.Block(d.Len(), "part")
	switch {
	case name == forestsName && c.forest == nil:
		c.decodeForest(d, data)
	case name == fieldsName && c.forest == nil:
		part := d.Part(data, "forest: ")
		forest := readFields(part, len(c.Classes))
		part.End()
		if d.Join(part); d.Err() == nil {
			c.decodeForest(d, forest)
		}
	case name == exponentsName && c.exponents == nil:
		part := d.Part(data, "exponents: ")
		checkExponents(part)
		part.End()
		d.Join(part)
		c.exponents = bytes.Clone(data)
	case name == forestsName, name == fieldsName, name == exponentsName, name == "":
		d.Fail("part %.40q has no name, or occurs twice", name)
	}
}

// decodeHeader reads the header that encodeHeader wrote.
func (c *Contribution) decodeHeader(d *wire.Decoder) {
	c.Member = d.String(MaxName)
	c.Instance, c.Epoch, c.Sequence = d.Uint64(), d.Uint64(), d.Uint64()
	c.BasisEpoch, c.Features, c.N = d.Uint64(), d.Uint64(), d.Uint()
	c.Classes, c.Counts = decodeCounts(d)
	for _, name := range c.Classes {
		if !utf8.ValidString(name) { // in JSON several would be one
			d.Fail("a class is not UTF-8")
		}
	}
	c.Horizons = decodeHorizons(d)
	for range c.Horizons {
		c.Weights = append(c.Weights, d.Float32("weights"))
	}
}

// decodeCounts reads the values that encodeCounts wrote.
func decodeCounts(d *wire.Decoder) (classes []string, counts []uint64) {
	n := d.Count(model.MaxClasses, 2, "number of classes")
	classes, counts = make([]string, n), make([]uint64, n)
	seen := map[string]bool{}
	for k := range n {
		classes[k], counts[k] = d.String(MaxName), d.Uint()
		if d.Err() == nil && (classes[k] == "" || seen[classes[k]]) {
			d.Fail("class %d has no name, or that of another", k)
		}
		seen[classes[k]] = true
	}
	return classes, counts
}

// decodeHorizons reads lengths that do not rise, each above 0.
func decodeHorizons(d *wire.Decoder) []float64 {
	lengths := d.Floats(d.Count(maxHorizons, 8, "number of horizons"), "horizons")
	for h, length := range lengths {
		if !(length > 0) || h > 0 && length > lengths[h-1] {
			d.Fail("horizons of %g observations", lengths)
			return nil
		}
	}
	return lengths
}

// decodeBasis reads the values that encodeBasis wrote.
func (c *Contribution) decodeBasis(d *wire.Decoder) {
	m, features := d.Int(maxInducing, "inducing points"), d.Int(maxFeatures, "features")
	c.Precision = Precision(d.Int(int(Float32), "size of a number"))
	if d.Err() == nil && (m < 1 || features < 1 || c.Precision != Bfloat16 && c.Precision != Float32) {
		d.Fail("%d inducing points in %d dimensions, numbers of %d bytes", m, features, c.Precision)
	}
	c.Basis.decodeShort(d, m, features)
}

// check returns an error if the header or the basis is out of range.
func (c *Contribution) check() error {
	left, over := c.N, false
	for _, n := range c.Counts {
		over = over || n > left
		left -= n
	}
	for _, v := range c.Weights {
		if !(v >= 0 && v <= 1) {
			return fmt.Errorf("fleet: weight of a horizon %g: %w", v, ErrContribution)
		}
	}
	if c.Member == "" || len(c.Classes) < 2 || len(c.Horizons) < 1 || c.N == 0 || over {
		return fmt.Errorf("fleet: contribution of %q with %d classes, %d horizons, %d labels: %w", c.Member, len(c.Classes), len(c.Horizons), c.N, ErrContribution)
	}
	return c.Basis.check()
}

// checkSites returns an error if a number of the sites is not finite or too large, or
// if a diagonal is negative.
func (c *Contribution) checkSites() error {
	m := c.Params.M
	for h := range c.Horizons {
		for k := range c.Classes {
			data, v := c.site(h, k), 0.
			for at, i, j := 0, 0, 0; len(data) > 0; at++ {
				v, data = c.Precision.number(data)
				if v-v != 0 || math.Abs(v) > maxNumber || i < m && i == j && v < 0 {
					return fmt.Errorf("fleet: horizon %d, class %.40q: number %d is %g: %w", h, c.Classes[k], at, v, ErrContribution)
				}
				if j++; j > i {
					i, j = i+1, 0
				}
			}
		}
	}
	return nil
}
