// Package homeassistant makes each model of a node a device of Home Assistant by MQTT device
// discovery: one retained message lists its entities and the topics of their states.
//
//	devices.go    Devices: what was announced, and when to announce again
//	discovery.go  the announcement of a model
//	clash.go      devices of other nodes with the same identifier
//
// Reference: home-assistant.io/integrations/mqtt, device discovery payload; the strict schema is
// DEVICE_DISCOVERY_SCHEMA in its source.
package homeassistant
