package config

import (
	"fmt"
	"reflect"
	"strings"

	"edge/internal/dataset"
	"edge/stream"
	"edge/stream/codec"
)

// SampleFor returns a configuration with a stream and a model for each data file,
// for the messages that `edge replay` publishes of it.
func SampleFor(paths []string, format dataset.Format) ([]byte, error) {
	var streams, labels, models strings.Builder
	for _, path := range paths {
		summary, err := dataset.Summarize(path, format)
		if err != nil {
			return nil, err
		}
		d, err := dataset.Open(path, format)
		if err != nil {
			return nil, err
		}
		d.Close()
		name, topic := stream.NodeName(d.Name), "sensors/"+d.Name
		features := "features: " + flow(d.Features)
		if reflect.DeepEqual(d.Features, codec.Stream{Dimension: len(d.Features)}.FeatureNames()) {
			features = fmt.Sprintf("dimension: %d", len(d.Features))
		}
		fmt.Fprintf(&streams, "  %s:\n    topics: %s\n    %s\n", name, flow([]string{topic}), features)
		if summary.Gaps > 0 {
			streams.WriteString("    on_missing: impute # the file has empty cells\n")
		}
		fmt.Fprintf(&labels, "  - topics: %s\n", flow([]string{topic + "/label"}))
		fmt.Fprintf(&models, "  %s:\n    streams: %s\n    classes: {names: %s}\n", name, flow([]string{name}), flow(summary.Classes))
		models.WriteString("    batch: {max_size: 16, max_wait: 250ms} # max_wait: 0s closes by count alone, as edge eval does\n")
	}
	return fmt.Appendf(nil, `# Learns what this publishes: edge replay FILE
mqtt: {servers: ["tcp://127.0.0.1:1883"]}
streams:
%slabels: # of edge replay --labels delayed
%smodels:
%sstore: {path: edge.db}
`, &streams, &labels, &models), nil
}
