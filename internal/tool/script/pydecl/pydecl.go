package pydecl

import (
	"context"
	"crypto/sha256"
	_ "embed"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"loki/internal/base/file/atomicfile"
	"loki/internal/base/process"
	"loki/internal/base/process/environ"
	"loki/internal/tool/script/lexer"
	"loki/internal/tool/script/signature"
)

//go:embed read.py
var program string

// timeout is how long Python may take for a source.
const timeout = 30 * time.Second

// kept are the variables of the environment that Python needs to start on some systems. None can hold a key.
var kept = []string{"PATH", "HOME", "SYSTEMROOT", "LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH", "PYENV_ROOT", "PYENV_VERSION"}

// Reader reads sources. It must not be changed after its first use; its methods may be called from several goroutines.
type Reader struct {
	// Python returns the interpreter and its first arguments. It is called for each source that is not in the cache.
	Python func() ([]string, error)
	// Environ is an environment, of which Python gets the variables that it needs to start.
	Environ []string
	// Cache is the directory in which declarations are kept by the digest of the source; empty means no cache.
	Cache string
}

// declarations is what read.py prints.
type declarations struct {
	Functions []struct {
		signature.Function
		Params []struct {
			signature.Param
			Value *signature.Type // of the default, nil for none and for an expression
		}
		Problem *signature.Error // for parameters that a tool cannot have
	}
	// The place of a mistake in the source, and what it is; empty for none.
	Line int
	Msg  string
}

// Parse returns the functions of a source whose names want accepts, in their order.
// Functions are those of the top level, with def or async def, decorated or not; methods
// are not included. If several have the same name, the last one wins, as it does in
// Python. The error is a *signature.Error in the chain for a mistake in the source, that of
// Reader.Python, or says why Python did not read it.
func (r Reader) Parse(src []byte, want func(name string) bool) ([]signature.Function, error) {
	text, err := lexer.Source(src)
	if err != nil {
		return nil, err
	}
	found, err := r.read(text)
	if err != nil {
		return nil, err
	}
	var list []signature.Function
	for _, d := range found.Functions {
		if !want(d.Name) {
			continue
		}
		if d.Problem != nil {
			return nil, fmt.Errorf("function %s: %w", d.Name, d.Problem)
		}
		f := d.Function
		for _, p := range d.Params {
			if p.Value != nil {
				p.Type = p.Type.OrDefault(*p.Value)
			}
			f.Params = append(f.Params, p.Param)
		}
		list = slices.DeleteFunc(list, func(g signature.Function) bool { return g.Name == f.Name })
		list = append(list, f)
	}
	return list, nil
}

// read returns the declarations of a source, from the cache if they are there.
func (r Reader) read(src string) (declarations, error) {
	sum := sha256.Sum256([]byte(program + "\x00" + src))
	file := filepath.Join(r.Cache, "python-"+hex.EncodeToString(sum[:16])+".json")
	var d declarations
	if r.Cache != "" {
		if doc, err := os.ReadFile(file); err == nil && json.Unmarshal(doc, &d) == nil {
			return d, nil // a damaged file is as good as a missing one
		}
	}
	doc, err := r.run(src)
	if err != nil {
		return declarations{}, err
	}
	d = declarations{}
	if err := json.Unmarshal(doc, &d); err != nil {
		return declarations{}, fmt.Errorf("the declarations that Python found: %w", err)
	}
	if d.Msg != "" {
		return declarations{}, &signature.Error{Line: d.Line, Msg: d.Msg}
	}
	if r.Cache != "" { // a failure only costs time
		_ = atomicfile.Write(file, doc, atomicfile.Options{Mode: atomicfile.Private, NoSync: true})
	}
	return d, nil
}

// run has Python read a source. The options keep Python from taking modules of the working directory, of the user's
// directories and of packages.
func (r Reader) run(src string) ([]byte, error) {
	argv, err := r.Python()
	if err != nil {
		return nil, fmt.Errorf("the script needs Python to be read: %w", err)
	}
	var env []string
	for _, name := range kept {
		if value, ok := environ.Lookup(r.Environ, name); ok {
			env = append(env, name+"="+value)
		}
	}
	res, err := process.Run(context.Background(), process.Command{
		Path: argv[0], Args: append(slices.Clone(argv[1:]), "-I", "-S", "-B", "-W", "ignore", "-c", program),
		Env: env, Stdin: strings.NewReader(src), Timeout: timeout, HasTimeout: true,
	})
	if err != nil {
		return nil, fmt.Errorf("python could not read the script: %w", err)
	}
	return res.Stdout, nil
}
