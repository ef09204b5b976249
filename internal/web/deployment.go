package web

import (
	"edge/internal/config"
	"edge/online"
	"edge/stream"
)

// Deployment is what a daemon serves under one configuration. It is not changed,
// only replaced.
type Deployment struct {
	Config *config.Config
	Node   *stream.Node
	Models []*Model // in the order of their names
}

// Model is one model of a Deployment. Others may share its loop.
type Model struct {
	Name   string
	Config online.Config
	Feed   stream.ModelConfig
	Loop   *online.Loop
}

// Model returns a model by its name, nil if there is none.
func (d *Deployment) Model(name string) *Model {
	for _, m := range d.Models {
		if m.Name == name {
			return m
		}
	}
	return nil
}
