package online

import (
	"fmt"
	"strings"

	"edge/model"
)

// inducingShape follows the names of the features in a Shape, perClassShape ends that of a
// configuration with a kernel for each class, and signalsShape comes before Signals, at the end.
const (
	inducingShape = " inducing="
	perClassShape = " kernel=per-class"
	signalsShape  = " signals="
)

// escapes are those of a feature's name in a Shape, between whose names are commas.
var escapes = strings.NewReplacer(`\`, `\\`, `,`, `\,`)

// Shape describes the part of the configuration that shapes the state;
// configurations with the same Shape can carry on from each other's states.
func (c Config) Shape() string {
	names := make([]string, len(c.Features))
	for i, name := range c.Features {
		names[i] = escapes.Replace(name)
	}
	var horizons []string
	for _, h := range c.Horizons {
		text, _ := h.MarshalText()
		horizons = append(horizons, string(text))
	}
	shape := fmt.Sprintf("features=%s"+inducingShape+"%d horizons=%s window=%d",
		strings.Join(names, ","), c.Inducing, strings.Join(horizons, ","), c.Window)
	if c.Kernel == PerClass {
		shape += perClassShape
	}
	if c.Signals != "" {
		shape += signalsShape + c.Signals
	}
	return shape
}

// FormerShape returns a Shape as earlier programs wrote it: without escapes, so that a name with a
// comma was read as two.
func FormerShape(shape string) string {
	names, rest, _ := cutLast(shape, inducingShape)
	return strings.Join(splitNames(names), ",") + inducingShape + rest
}

// splitNames returns the names that Shape has joined.
func splitNames(text string) (names []string) {
	var name []byte
	for i := 0; i < len(text); i++ {
		switch rest := text[i+1:]; {
		case text[i] == ',':
			names, name = append(names, string(name)), name[:0]
			continue
		case text[i] == '\\' && (strings.HasPrefix(rest, ",") || strings.HasPrefix(rest, `\`)):
			i++
		}
		name = append(name, text[i])
	}
	return append(names, string(name))
}

// ShapeChange describes the difference of a stored Shape from that of a configuration.
func ShapeChange(stored, now string) string {
	without := func(shape string) string {
		shape, _, _ = cutLast(shape, signalsShape)
		return shape
	}
	if without(stored) == without(now) {
		return "the state was learnt with features that the streams made otherwise of their signals: signals, values, hold, derive, calendar or window have changed"
	}
	return fmt.Sprintf("the state was learnt with %q, the configuration now has %q", stored, now)
}

// ConfigOfShape returns a configuration with the given Config.Shape. A shape that it cannot
// read is ErrNewer.
func ConfigOfShape(shape string) (Config, error) {
	cfg := DefaultConfig()
	names, rest, ok := cutLast(shape, inducingShape)
	names, prefix := strings.CutPrefix(names, "features=")
	var horizons string
	if _, err := fmt.Sscanf(rest, "%d horizons=%s window=%d", &cfg.Inducing, &horizons, &cfg.Window); !ok || !prefix || err != nil {
		return cfg, fmt.Errorf("the state's shape %q cannot be read: %w", shape, ErrNewer)
	}
	rest, cfg.Signals, _ = cutLast(rest, signalsShape)
	if strings.HasSuffix(rest, perClassShape) {
		cfg.Kernel = PerClass
	}
	cfg.Features = splitNames(names)
	cfg.Horizons, cfg.Experts.Forest = nil, StoredForest
	for word := range strings.SplitSeq(horizons, ",") {
		var h Horizon
		if err := h.UnmarshalText([]byte(word)); err != nil {
			return cfg, fmt.Errorf("the state's shape %q cannot be read: %w: %w", shape, err, ErrNewer)
		}
		cfg.Horizons = append(cfg.Horizons, h)
	}
	if now := cfg.Shape(); now != shape && FormerShape(now) != shape {
		return cfg, fmt.Errorf("the state's shape %q cannot be read: %w", shape, ErrNewer)
	}
	return cfg, nil
}

func cutLast(s, sep string) (before, after string, found bool) {
	if i := strings.LastIndex(s, sep); i >= 0 {
		return s[:i], s[i+len(sep):], true
	}
	return s, "", false
}

// EncodedSize returns the size in bytes of a model's encoded state with C classes,
// once the warm-up is over:
//
//	8·[H·C·(M(M+1)/2 + M) + R·(D + 2·H·C + 2·H·(C−1)) + 3·(M·D + D + 3) + 2·C·(D+1)] + order
//
// and those of a forest, see forest.Sizes.Bytes. The pairs' 2·H·(C−1) are for more than
// two classes. The order of labels has 10 counts for each of C² pairs, of about 2 bytes,
// and 1.5 kB. Ranks in the scaling, which the last build may take, are 8·33·D more.
func (cfg *Config) EncodedSize(classes int) uint64 {
	h, c, m := uint64(len(cfg.Horizons)), uint64(classes), uint64(cfg.Inducing)
	r, d := uint64(cfg.Window), uint64(len(cfg.Features))
	kernels := uint64(1)
	if cfg.Kernel == PerClass {
		kernels = max(c, 1)
	}
	sites := 2 * h * c
	if c > 2 {
		sites += 2 * h * (c - 1)
	}
	size := 8*(h*c*(m*(m+1)/2+m)+r*(d+sites)+3*kernels*(m*d+d+3)+2*c*(d+1)) + 20*c*c + 1536
	if f := cfg.Experts.Forest.sizes(len(cfg.Features)); f.Trees > 0 {
		size += f.Bytes(len(cfg.Features), classes)
	}
	return size
}

// LargestSize is EncodedSize of a state that also has the ranks of the scaling, and the samples that
// are held to calibrate features.
func (cfg *Config) LargestSize(classes int) uint64 {
	return cfg.EncodedSize(classes) + 8*uint64(len(cfg.Features))*(model.RankPoints+lastTrial)
}
