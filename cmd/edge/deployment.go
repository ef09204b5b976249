package main

import (
	"edge/online"
	"edge/stream"
)

// Deployment is what a daemon serves under one configuration. It is not changed,
// only replaced.
type Deployment struct {
	cfg    *Config
	node   *stream.Node
	models []*servedModel // in the order of their names
}

// servedModel is one model of a Deployment. Others may share its loop.
type servedModel struct {
	name   string
	config online.Config
	feed   stream.ModelConfig
	loop   *online.Loop
}

// model returns a model by its name, nil if there is none.
func (d *Deployment) model(name string) *servedModel {
	for _, m := range d.models {
		if m.name == name {
			return m
		}
	}
	return nil
}
