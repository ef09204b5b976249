package doctor

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"edge/internal/config"
	"edge/internal/doctor/diagnosis"
	"edge/internal/exit"
	"edge/internal/process"
	"edge/internal/statefile"
	"edge/persist"
	"edge/stream/field"
	"edge/stream/mqtt"
)

// CheckFiles examines the files that a daemon under a valid configuration reads
// before it connects: secrets, certificates and the state. The error is the reason
// why the daemon would not start. A warning depends on the user and the environment of
// the daemon.
func CheckFiles(c *config.Config) (warnings []string, err error) {
	var f fileCheck
	f.secrets("mqtt", c.MQTT.Password, c.MQTT.TLS.CA+c.MQTT.TLS.Cert+c.MQTT.TLS.Key, func() error { _, err := c.MQTT.Credentials(); return err })
	if c.HTTP.Listen != "" {
		f.secrets("http", c.HTTP.Password, c.HTTP.TLS.Cert+c.HTTP.TLS.Key, c.HTTP.Readable)
	}
	if path, err := c.StorePath(); err != nil {
		f.warn("store.path", "${%s} is not set here, so that the state was not read", config.FirstUnset(c.Store.Path))
	} else {
		f.state(c, path)
	}
	return f.warnings, errors.Join(f.errs...)
}

// fileCheck collects the findings of CheckFiles.
type fileCheck struct {
	warnings []string
	errs     []error
}

// warn adds a warning about a key. It is not inlined, which would make its many callers larger.
//
//go:noinline
func (f *fileCheck) warn(key, format string, args ...any) {
	f.warnings = append(f.warnings, key+": "+fmt.Sprintf(format, args...))
}

// unsure warns of an error that the daemon's user may not have.
func (f *fileCheck) unsure(key string, err error) {
	f.warn(key, "%v; check as the daemon's user is certain", err)
}

func (f *fileCheck) fail(code int, err error) { f.errs = append(f.errs, exit.With(code, err)) }

// secrets examines the password and the certificates of a section, which read reads. tls has
// the paths of the certificates.
func (f *fileCheck) secrets(section string, password mqtt.Secret, tls string, read func() error) {
	if name := config.FirstUnset(password.File); name != "" {
		f.warn(section+".password", "${%s} is not set here, so that the file was not read", name)
	} else if name := config.FirstUnset(tls); name != "" {
		f.warn(section+".tls", "${%s} is not set here, so that the files were not read", name)
	} else if env := password.Env; env != "" && os.Getenv(env) == "" {
		f.warn(section+".password", "%s is not set here; the daemon needs it", env)
	} else if err := read(); errors.Is(err, fs.ErrPermission) {
		f.unsure(section, err)
	} else if err != nil {
		f.fail(exit.Config, err)
	}
}

// state examines the state file, or the folder in which the daemon would make it.
func (f *fileCheck) state(c *config.Config, path string) {
	const key = "store.path"
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		f.folder(filepath.Dir(path))
		return
	case err != nil:
		f.unsure(key, err)
		return
	case info.IsDir():
		f.fail(exit.Config, fmt.Errorf("%s: %s is a folder: want the path of a file, such as %s", key, path, filepath.Join(path, "edge.db")))
		return
	}
	unused, err := fits(c, path)
	for _, name := range unused {
		f.warn(key, "%s; %s", unusedState(name), unusedAdvice(path, name))
	}
	if errors.Is(err, fs.ErrPermission) {
		f.unsure(key, err)
	} else if errors.Is(err, persist.ErrDamaged) { // which the start repairs
		f.warn(key, "%v", err)
	} else if err != nil {
		f.fail(exit.Store, err)
	} else if err := process.Writable(filepath.Dir(path)); err != nil {
		f.unsure(key, err)
	}
}

// folder examines the folder of a state file that does not exist.
func (f *fileCheck) folder(path string) {
	const key = "store.path"
	if info, err := os.Stat(path); err != nil {
		f.warn(key, "the folder %s does not exist; a service makes it when it starts, else: mkdir -p %q", path, path)
	} else if !info.IsDir() {
		f.fail(exit.Config, fmt.Errorf("%s: %s is no folder", key, path))
	} else if err := process.Writable(path); err != nil {
		f.unsure(key, err)
	}
}

// unusedState describes a model in a state file that the configuration does not name.
func unusedState(name string) string {
	return fmt.Sprintf("the state file also holds model %s, which no model of the configuration continues", name)
}

// unusedAdvice is the remedy for it.
func unusedAdvice(path, name string) string {
	return fmt.Sprintf("call a model %s to continue from it, or discard it: edge reset --model %[1]s --state %s", name, path)
}

// examineState fails on a state file from which the daemon would not start, and warns of states
// that no model continues. It cannot read the file while a daemon has it open; its log has the
// warning then.
func examineState(d *diagnosis.Diagnosis, cfg *config.Config) {
	const name = "state"
	path, err := cfg.StorePath()
	if err != nil {
		return // examineDisk reports it
	}
	unused, err := fits(cfg, path)
	for _, model := range unused {
		d.Warn(name, unusedState(model), unusedAdvice(path, model))
	}
	switch {
	case errors.Is(err, fs.ErrPermission):
		d.Fail(name, "this user cannot use it: "+err.Error(), "run doctor as the daemon's user; then chown the file to it")
	case errors.Is(err, persist.ErrDamaged):
		d.Warn(name, err.Error(), "edge verify says what would be lost; if a backup has more, edge restore puts it in its place")
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		d.Fail(name, "the daemon would not start: "+err.Error(), "")
	}
}

// fits returns the reason why a daemon under the configuration and of this user cannot continue
// from a state, and the models in it that the configuration does not name. A state that a
// daemon has open fits; one that the next start repairs is ErrDamaged; a model that it does not
// hold, or that has learnt nothing, begins anew.
func fits(c *config.Config, path string) (unused []string, err error) {
	store, err := persist.OpenReadOnly(path, persist.Options{Dedupe: c.Store.Dedupe})
	if errors.Is(err, persist.ErrLocked) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	if err := process.Writable(path); err != nil {
		return nil, err
	}
	c = statefile.Effective(store, c)
	unused = statefile.Unused(store, c)
	for _, name := range field.Names(c.Models) {
		learner, err := c.Learner(name)
		if err != nil {
			return unused, err
		}
		kept, err := store.Load(name, learner.Shape())
		if errors.Is(err, persist.ErrModel) || errors.Is(err, persist.ErrShape) && statefile.Vacant(store, name, learner.Classes.Names) {
			continue
		}
		if err != nil {
			return unused, err
		}
		if _, err := statefile.Learner(path, name, learner, kept.State); err != nil {
			return unused, err
		}
	}
	return unused, nil
}
