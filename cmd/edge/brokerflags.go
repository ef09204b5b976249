package main

import (
	"edge/stream"

	"github.com/spf13/cobra"
)

// brokerFlags say how a tool reaches the broker.
type brokerFlags struct {
	config, url, username, passwordFile, ca, base string
}

func (b *brokerFlags) add(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringVarP(&b.config, "config", "c", "", "take the connection from the mqtt section of this `FILE`")
	f.StringVar(&b.url, "broker", "", "`URL` of the broker, such as mqtt://127.0.0.1:1883 or mqtts://broker.lan")
	f.StringVar(&b.username, "username", "", "user `NAME` (default EDGE_MQTT_USERNAME)")
	f.StringVar(&b.passwordFile, "password-file", "", "`FILE` that holds the password (default EDGE_MQTT_PASSWORD_FILE)")
	f.StringVar(&b.ca, "ca", "", "`FILE` of certificates to trust (default EDGE_MQTT_TLS_CA, else the system's)")
	f.StringVar(&b.base, "base", "", "base `TOPIC` of the daemons (default edge)")
}

// mqtt is the connection that the flags, the configuration and the environment
// ask for; cfg is nil where no configuration is named.
func (b *brokerFlags) mqtt(environ []string) (m stream.MQTT, cfg *Config, err error) {
	if b.config != "" {
		if cfg, err = LoadConfig(b.config); err != nil {
			return m, nil, err
		}
		m = cfg.MQTT
	} else {
		plain := DefaultConfig()
		if _, err := plain.applyEnviron(environ); err != nil {
			return m, nil, coded(exitConfig, err)
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
		m.Password = stream.Secret{File: b.passwordFile}
	}
	if b.ca != "" {
		m.TLS.CA = b.ca
	}
	if b.base != "" {
		m.BaseTopic = b.base
	}
	return m, cfg, nil
}
