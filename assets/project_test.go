package assets_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"unicode/utf8"
)

// sharedScript runs bash code in dir that has sourced the library of bundled agents, and
// returns what it prints.
func sharedScript(t *testing.T, dir, code string, env ...string) string {
	t.Helper()
	if runtime.GOOS == "windows" {
		t.Skip("the names of some files in these tests are impossible there")
	}
	bash := lookPath(t, "bash")
	library, err := filepath.Abs(filepath.Join("agents", ".shared", "utils.sh"))
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), bash, "-c", "set -euo pipefail\n. \"$0\"\n"+code, library)
	cmd.Dir = dir
	cmd.Env = append([]string{"PATH=" + os.Getenv("PATH"), "HOME=" + dir, "LOKI_EXECUTABLE=/nowhere/loki", "CDPATH=/"}, env...)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return string(out)
}

// project writes files, given as names and contents in turn, into a new directory.
func project(t *testing.T, files ...string) string {
	t.Helper()
	dir := t.TempDir()
	for i := 0; i+1 < len(files); i += 2 {
		if !write(t, dir, files[i], []byte(files[i+1])) {
			t.Fatalf("%s cannot be written", files[i])
		}
	}
	return dir
}

const showProject = `detect_project; printf '%s|%s|%s|%s' "$project_type" "$project_build" "$project_test" "$project_check"`

func TestDetectProject(t *testing.T) {
	t.Parallel()
	const ruff = "ruff check ."
	for _, tt := range []struct {
		name  string
		files []string
		want  string // type|build|test|check
	}{
		{"rust", []string{"Cargo.toml", "", "Makefile", ""}, "rust|cargo build|cargo test|cargo check"},
		{"go", []string{"go.mod", "", "package.json", "{}"}, "go|go build ./...|go test ./...|go vet ./..."},
		{"deno", []string{"deno.json", "{}"}, "deno|deno task build|deno test|deno lint"},
		{"deno_jsonc", []string{"deno.jsonc", `{"tasks": {"start": "x"}}`}, "deno||deno test|deno lint"},
		{"npm", []string{"package.json", "{}"}, "nodejs|npm run build|npm test|npm run lint"},
		{"npm_scripts", []string{"package.json", `{"scripts": {"test": "x"}}`}, "nodejs||npm test|"},
		{"yarn", []string{"package.json", "", "yarn.lock", ""}, "nodejs|yarn run build|yarn test|yarn run lint"},
		{"pnpm", []string{"package.json", "", "pnpm-lock.yaml", ""}, "nodejs|pnpm run build|pnpm test|pnpm run lint"},
		{"bun", []string{"package.json", "", "bun.lockb", ""}, "nodejs|bun run build|bun test|bun run lint"},
		{"pyproject", []string{"pyproject.toml", ""}, "python||pytest|" + ruff},
		{"setup_py", []string{"setup.py", ""}, "python||pytest|" + ruff},
		{"poetry", []string{"pyproject.toml", "", "poetry.lock", ""}, "python||poetry run pytest|poetry run " + ruff},
		{"uv", []string{"setup.cfg", "", "uv.lock", ""}, "python||uv run pytest|uv run " + ruff},
		{"maven", []string{"pom.xml", ""}, "java|mvn compile|mvn test|mvn verify"},
		{"gradle", []string{"build.gradle", ""}, "java|gradle build|gradle test|gradle check"},
		{"gradle_wrapper", []string{"build.gradle.kts", "", "gradlew", ""}, "java|./gradlew build|./gradlew test|./gradlew check"},
		{"solution", []string{"An App.sln", ""}, "dotnet|dotnet build|dotnet test|dotnet build --warnaserrors"},
		{"csproj", []string{"app.csproj", ""}, "dotnet|dotnet build|dotnet test|dotnet build --warnaserrors"},
		{"cmake", []string{"CMakeLists.txt", "", "Makefile", ""}, "cmake|cmake --build build|ctest --test-dir build|cmake --build build"},
		{"rake", []string{"Gemfile", ""}, "ruby||bundle exec rake test|bundle exec rubocop"},
		{"rspec", []string{"Gemfile", "gem 'rspec'\n"}, "ruby||bundle exec rspec|bundle exec rubocop"},
		{"elixir", []string{"mix.exs", ""}, "elixir|mix compile|mix test|mix credo"},
		{"php", []string{"composer.json", ""}, "php||./vendor/bin/phpunit|./vendor/bin/phpstan analyse"},
		{"swift", []string{"Package.swift", ""}, "swift|swift build|swift test|swift build"},
		{"zig", []string{"build.zig", ""}, "zig|zig build|zig build test|zig build"},
		{"just", []string{"justfile", "build:\n\tx\ntest arg:\n\tx\n"}, "just|just build|just test|"},
		{"make", []string{"Makefile", ""}, "make|make build|make test|make lint"},
		{"make_targets", []string{"Makefile", "X := 1\nall: x\ntest: all\n\tx\n"}, "make||make test|"},
		{"a_directory", []string{"go.mod/x", "", "pom.xml", ""}, "java|mvn compile|mvn test|mvn verify"},
		{"unknown", []string{"README.md", ""}, "unknown|||"},
		{"file", []string{".loki-project.json", `{"type":"own","build":"b \"x\"","test":"t","check":""}`, "go.mod", ""}, `own|b "x"|t|`},
		{"file_of_a_marker", []string{".loki-project.json", `{"type":"own", "_detected_by":"marker x.txt"}`, "x.txt", ""}, "own|||"},
		{"file_outdated", []string{".loki-project.json", `{"type":"own", "_detected_by":"marker x.txt"}`, "go.mod", ""}, "go|go build ./...|go test ./...|go vet ./..."},
		{"file_of_a_model", []string{".loki-project.json", `{"type":"own","test":"t", "_detected_by":"model"}`}, "unknown|||"},
		{"file_broken", []string{".loki-project.json", `{"type":"own",`, "pom.xml", ""}, "java|mvn compile|mvn test|mvn verify"},
		{"file_nested", []string{".loki-project.json", `{"type":"own","x":{"test":"t"}}`, "pom.xml", ""}, "java|mvn compile|mvn test|mvn verify"},
		{"file_more_than_json", []string{".loki-project.json", `{"type":"own"}; rm`, "pom.xml", ""}, "java|mvn compile|mvn test|mvn verify"},
		{"file_no_type", []string{".loki-project.json", `{"type":"","test":"t"}`}, "unknown|||"},
		{"file_line_end", []string{".loki-project.json", `{"type":"own","test":"a\nb"}`}, "unknown|||"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			dir := project(t, tt.files...)
			if got := sharedScript(t, dir, showProject); got != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}

// What was found is kept if the agent may write, and read again.
func TestDetectProjectKeeps(t *testing.T) {
	t.Parallel()
	dir := project(t, "go.mod", "")
	sharedScript(t, dir, showProject)
	file := filepath.Join(dir, ".loki-project.json")
	if _, err := os.Stat(file); err == nil {
		t.Error("an agent that only reads wrote the file")
	}
	const want = "go|go build ./...|go test ./...|go vet ./..."
	for range 2 {
		if got := sharedScript(t, dir, "keep_project=yes\n"+showProject); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
	text, err := os.ReadFile(file)
	if err != nil || !strings.HasPrefix(string(text), `{"type": "go", "build": "go build ./...", "test": "go test ./...", "check": "go vet ./...", "_detected_by": "marker go.mod", "_cached_at": "20`) {
		t.Errorf("%v %s", err, text)
	}
	if left, _ := filepath.Glob(file + ".*"); left != nil {
		t.Errorf("%q was left", left)
	}
}

// A model is asked last, and its commands are words alone.
func TestDetectProjectByModel(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ name, answer, want string }{
		{"plain", `{"type": "ninja", "build": "ninja -C out", "test": "", "check": ""}`, "ninja|ninja -C out||"},
		{"operators", `{"type": "ninja", "build": "ninja; rm -rf /", "test": "", "check": ""}`, "unknown|||"},
		{"substitution", `{"type": "ninja", "build": "", "test": "$(x)", "check": ""}`, "unknown|||"},
		{"prose", `I think it is ninja`, "unknown|||"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			dir := project(t, "build.ninja.toml", "first line\n", "src/a.c", "x")
			bin := project(t, "loki", "#!/bin/sh\ncat >\"$0.asked\"; echo \"$LOKI_FUNCTION_CALLING_SUPPORT\" >>\"$0.asked\"\nprintf '%s' '"+tt.answer+"'\n")
			loki := filepath.Join(bin, "loki")
			if err := os.Chmod(loki, 0o755); err != nil {
				t.Fatal(err)
			}
			if got := sharedScript(t, dir, "ask_model=yes keep_project=yes\n"+showProject, "LOKI_EXECUTABLE="+loki); got != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
			asked, err := os.ReadFile(loki + ".asked")
			for _, part := range []string{"src/a.c", "1 c\n", "The first lines of build.ninja.toml:\nfirst line", "false"} {
				if err != nil || !strings.Contains(string(asked), part) {
					t.Errorf("%q is not in the prompt: %v\n%s", part, err, asked)
				}
			}
			if _, err := os.Stat(filepath.Join(dir, ".loki-project.json")); (err == nil) != (tt.want != "unknown|||") {
				t.Errorf(".loki-project.json: %v", err)
			}
		})
	}
}

func TestSharedInside(t *testing.T) {
	t.Parallel()
	dir := project(t, "in/a.txt", "a", "in/sub/b.txt", "b", "out/secret", "s")
	for link, target := range map[string]string{"in/leads_out": "../out/secret", "in/leads_in": "sub/b.txt", "in/far": "../out"} {
		if err := os.Symlink(target, filepath.Join(dir, link)); err != nil {
			t.Skip(err)
		}
	}
	for given, want := range map[string]string{
		"a.txt": "a.txt", "./sub/../a.txt": "a.txt", "sub": "sub", ".": ".", dir + "/in/a.txt": "a.txt", "leads_in": "sub/b.txt", "-x": "no",
		"../out/secret": "outside", "/etc": "outside", "leads_out": "outside", "far": "outside", "far/secret": "outside", "nothing": "no",
	} {
		got := sharedScript(t, dir, `enter_project; (inside "$given" 2>/dev/null && echo "$path") || true`+"\n", "given="+given, "LLM_AGENT_VAR_PROJECT_DIR=in")
		if ok := want != "outside" && want != "no"; ok && got != want+"\n" || !ok && got != "" {
			t.Errorf("%s: got %q, want %q", given, got, want)
		}
	}
}

// What is written in awk works with every awk there is.
func TestSharedAwk(t *testing.T) {
	t.Parallel()
	dir := project(t,
		"text", "a \"quoted\" \\ text\twith\r\nlines \x01\x1b[1m \xff é 😀\n\n",
		".loki-project.json", `{"type":"own","build":"b \"x\" \\","test":"t","check":""}`, "long.txt", strings.Repeat("line\n", 150),
	)
	for _, tools := range toolsets(t) {
		t.Run(tools.name, func(t *testing.T) {
			for code, want := range map[string]string{
				"json_string <text":                   `"a \"quoted\" \\ text\twith\r\nlines [1m  é 😀\n"`,
				"json_string </dev/null":              `""`,
				showProject:                           `own|b "x" \|t|`,
				"project_tree":                        ".loki-project.json\nlong.txt\ntext\n",
				"enter_project; show_file long.txt 1": "1\tline\n[149 more lines; ask for more with lines]\n",
				"search_text line txt | tail -n 1":    "[50 more lines; use a narrower pattern]\n",
			} {
				if got := sharedScript(t, dir, code, "PATH="+tools.path); got != want {
					t.Errorf("%s: got %q, want %q", code, got, want)
				}
			}
		})
	}
}

// FuzzProjectFile reads any .loki-project.json: one that is not understood is skipped, and what
// is taken from another is the text of its members.
func FuzzProjectFile(f *testing.F) {
	for _, seed := range []string{`{"type":"own","build":"b","test":"t","check":"c"}`, `{"type":"a\"\\\/b"}`, `{"type":"a\u0041"}`, `{"type":1}`, `[]`, `{"type":"a","type":"b"}`, "{\"type\":\"a\x00\"}", `{`, ``, ` { "type" : "x" } `} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if !utf8.ValidString(text) {
			t.Skip("not JSON, and its bytes stay as they are")
		}
		dir := project(t, ".loki-project.json", text)
		got := sharedScript(t, dir, `detect_project; printf '%s\n' "$project_detected_by" "$project_type" "$project_build" "$project_test" "$project_check"`)
		lines := strings.Split(got, "\n")
		if len(lines) != 6 {
			t.Fatalf("%q gives %q", text, got)
		}
		if lines[0] == "none" {
			return
		}
		members := make(map[string]string)
		if err := json.Unmarshal([]byte(text), &members); err != nil {
			t.Fatalf("%q was taken, but is not an object of texts: %v", text, err)
		}
		for i, name := range []string{"type", "build", "test", "check"} {
			if lines[i+1] != members[name] {
				t.Errorf("%s of %q is %q", name, text, lines[i+1])
			}
		}
	})
}
