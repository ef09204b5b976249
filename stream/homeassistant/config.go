package homeassistant

import (
	"fmt"
	"time"

	"edge/stream/field"
	"edge/stream/topic"
)

// Config configures the devices of the models in Home Assistant.
type Config struct {
	// Enabled announces each model as a device. When it is switched off, the devices are
	// removed. Default false.
	Enabled bool `yaml:"enabled"`
	// DiscoveryPrefix is the prefix of Home Assistant. Default homeassistant.
	DiscoveryPrefix string `yaml:"discovery_prefix"`
	// StatusTopic is the topic on which Home Assistant announces its start. Default
	// homeassistant/status.
	StatusTopic string `yaml:"status_topic"`
	// ExpireAfter is how long a prediction is shown without a newer one; then the class
	// is unavailable. 0: until the next prediction, for devices that report only
	// changes. Whole seconds. Default 0.
	ExpireAfter time.Duration `yaml:"expire_after"`
}

// DefaultConfig returns the defaults that configs/edge.yaml documents.
func DefaultConfig() Config {
	return Config{DiscoveryPrefix: "homeassistant", StatusTopic: "homeassistant/status"}
}

// Validate reports every field that is out of range, joined.
func (c Config) Validate() error {
	return field.Join(
		field.Check(topic.Check(c.DiscoveryPrefix) == nil, "discovery_prefix", fmt.Sprintf("%q", c.DiscoveryPrefix), "a topic"),
		field.Check(topic.Check(c.StatusTopic) == nil, "status_topic", fmt.Sprintf("%q", c.StatusTopic), "a topic"),
		field.Check(c.ExpireAfter >= 0 && c.ExpireAfter%time.Second == 0, "expire_after", c.ExpireAfter, "0s or whole seconds"),
	)
}
