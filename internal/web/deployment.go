package web

import (
	"edge/internal/config"
	"edge/online"
	"edge/stream"
)

// Deployment is the node and the models of a daemon under one configuration. A reload
// replaces it whole.
type Deployment struct {
	Config *config.Config
	Node   *stream.Node
	Models []*Model // in the order of their names
}

// Model is one model of a Deployment. Several models may share a loop.
type Model struct {
	Name   string
	Config online.Config
	Feed   stream.ModelConfig
	Loop   *online.Loop
}

// Model returns a model by its name, nil if it does not exist.
func (d *Deployment) Model(name string) *Model {
	for _, m := range d.Models {
		if m.Name == name {
			return m
		}
	}
	return nil
}
