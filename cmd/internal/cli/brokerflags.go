package cli

import (
	"errors"
	"fmt"
	"io/fs"

	"github.com/spf13/cobra"

	"edge/internal/config"
	"edge/internal/exit"
	"edge/stream/mqtt"
)

// BrokerFlags are the flags of a broker's address and credentials.
type BrokerFlags struct {
	config, url, username, passwordFile, ca, base string

	Default string // the configuration without --config and --broker; "": none
}

// Add adds the flags to a command.
func (b *BrokerFlags) Add(cmd *cobra.Command) {
	f := cmd.Flags()
	of := ""
	if b.Default != "" {
		of = " (default " + b.Default + ", without --broker)"
	}
	f.StringVarP(&b.config, "config", "c", "", "take the connection from the mqtt section of this `FILE`"+of)
	f.StringVar(&b.url, "broker", "", "`URL` of the broker, such as mqtt://127.0.0.1:1883 or mqtts://broker.lan")
	f.StringVar(&b.username, "username", "", "user `NAME` (default EDGE_MQTT_USERNAME)")
	f.StringVar(&b.passwordFile, "password-file", "", "`FILE` that holds the password (default EDGE_MQTT_PASSWORD_FILE)")
	f.StringVar(&b.ca, "ca", "", "`FILE` of certificates to trust (default EDGE_MQTT_TLS_CA, else the system's)")
	f.StringVar(&b.base, "base", "", "base `TOPIC` of the daemons (default edge)")
}

// MQTT returns the connection of the flags, the configuration and the
// environment; cfg is nil without a configuration.
func (b *BrokerFlags) MQTT(environ []string) (m mqtt.Config, cfg *config.Config, err error) {
	path := b.config
	if path == "" && b.url == "" {
		path = b.Default
	}
	if path != "" {
		if cfg, err = config.Load(path); err != nil {
			if b.config == "" && errors.Is(err, fs.ErrNotExist) {
				err = fmt.Errorf("%w; --broker URL does without", err)
			}
			return m, nil, err
		}
		m = cfg.MQTT
	} else {
		plain := config.Default()
		if _, err := plain.ApplyEnviron(environ); err != nil {
			return m, nil, exit.With(exit.Config, err)
		}
		m = plain.MQTT
	}
	if b.url != "" {
		m.Servers = []string{b.url}
	}
	if b.username != "" {
		m.Username = b.username
	}
	if b.passwordFile != "" {
		m.Password = mqtt.Secret{File: b.passwordFile}
	}
	if b.ca != "" {
		m.TLS.CA = b.ca
	}
	if b.base != "" {
		m.BaseTopic = b.base
	}
	return m, cfg, nil
}
