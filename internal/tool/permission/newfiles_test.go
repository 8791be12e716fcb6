package permission_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"loki/internal/tool/permission"
)

// TestNewFiles is about new files of which programs run what is in them, or find by them what they run: they are asked about, and ordinary
// ones are not.
func TestNewFiles(t *testing.T) {
	t.Parallel()
	root := resolved(t, t.TempDir())
	for _, dir := range []string{".storybook", "src", "tools", "mise"} {
		if err := os.Mkdir(filepath.Join(root, dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(root, ".eslintrc.json"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	j := judge(t, permission.Options{Root: root, Home: "/home/user"})
	asked := func(tool, path string) bool {
		args, _ := json.Marshal(map[string]string{"path": path, "contents": "x"}) // cannot fail
		v := j.Judge(permission.Call{Tool: tool, Arguments: args, Destructive: true})
		return v.Decided && v.Action == permission.Ask
	}
	count := 0
	for path := range strings.FieldsSeq(later) {
		for _, tool := range []string{"fs_write", "fs_patch"} {
			for _, at := range []string{path, "sub/dir/" + path, strings.ToUpper(path), "./x/../" + path} {
				if count++; !asked(tool, at) {
					t.Errorf("%s makes %s unasked", tool, at)
				}
			}
		}
	}
	if !asked("fs_mkdir", ".foo") || !asked("fs_mkdir", "a/.foo/b") {
		t.Error("fs_mkdir makes a directory with a dot unasked")
	}
	var questions []string
	files := strings.Fields(ordinary)
	for _, path := range files {
		if asked("fs_write", path) {
			questions = append(questions, path)
		}
	}
	t.Logf("%d that run later; of %d ordinary files, asked about %d: %s", count, len(files), len(questions), questions)
	if len(files) < 100 || len(questions)*100 >= 2*len(files) {
		t.Errorf("of %d ordinary files, asked about %d: %s", len(files), len(questions), questions)
	}

	// A rule that names the place allows it.
	j = judge(t, permission.Options{Root: root, Rules: permission.Rules{List: []permission.Rule{
		{Tool: "fs_write", Action: permission.Allow},
		{Tool: "fs_write", Action: permission.Allow, Paths: []string{".github/workflows/**", ".prettierrc"}},
	}}})
	for path, want := range map[string]bool{".github/workflows/ci.yml": false, ".prettierrc": false, "src/a.go": false, ".eslintrc.json": false, ".babelrc": true, ".github/x": true} {
		if got := asked("fs_write", path); got != want {
			t.Errorf("beside a rule that allows, %s is asked about: %v", path, got)
		}
	}
}

// later are places that run later, from the manuals of programs.
const later = `.helix/languages.toml .Rprofile .irbrc .pryrc .iex.exs .ghci .ocamlinit .pdbrc .lite_project.lua .dir-locals-2.el crush.json .crush.json .aider.conf.yml
	opencode.jsonc CLAUDE.local.md AGENTS.override.md .github/hooks/h.json lefthook.yaml lefthook-local.yml lefthook.toml mise.local.toml .mise.local.toml
	.pnpmfile.mjs .gitpod.yml .bazelrc tools/bazel .mvn/extensions.xml buildspec.yml cloudbuild.yaml .tekton/p.yaml .semaphore/semaphore.yml .build.yml azure-pipelines.yaml
	.env .eslintrc.js .prettierrc .babelrc .lintstagedrc.json .storybook/main.js .bsp/x.json .rvmrc .autoenv .perlcriticrc .RData .htaccess .luacheckrc .pylintrc
	.foo .foo/bar .config/x/y .github/dependabot-hooks.yml .nextrc .cached/x .gitattributes`

// ordinary are new files of the sort that models write all day.
const ordinary = `README.md CHANGELOG.md LICENSE CONTRIBUTING.md docs/index.md docs/api/errors.md docs/img/logo.svg Makefile Dockerfile docker-compose.yml Procfile Justfile Taskfile.yml
	package.json tsconfig.json vite.config.ts webpack.config.js jest.config.js tailwind.config.js next.config.mjs eslint.config.js pnpm-workspace.yaml go.mod go.sum main.go
	cmd/app/main.go internal/store/store.go internal/store/store_test.go pyproject.toml setup.py setup.cfg requirements.txt conftest.py tests/test_app.py src/app/__init__.py
	src/app/models.py Cargo.toml src/main.rs src/lib.rs build.rs pom.xml build.gradle settings.gradle src/main/java/App.java Gemfile Rakefile app/models/user.rb config/routes.rb
	composer.json public/index.php index.html style.css src/App.tsx src/components/Button.tsx src/hooks/useX.ts src/index.test.ts data/sample.csv data/x.json schema.sql
	migrations/001_init.sql scripts/deploy.sh scripts/seed.py bin/run k8s/deployment.yaml helm/Chart.yaml terraform/main.tf CMakeLists.txt src/main.c include/x.h Package.swift
	Sources/App/main.swift mix.exs lib/app.ex notebooks/x.ipynb report.tex notes.txt TODO.md openapi.yaml proto/x.proto assets/logo.png locale/de.po
	.gitignore .dockerignore .editorconfig .gitkeep src/.gitkeep .npmignore .nvmrc .python-version .eslintignore .prettierignore .mailmap .env.example .coverage
	.next/build-manifest.json .pytest_cache/v/x .cache/x .github/ISSUE_TEMPLATE/bug.md .github/PULL_REQUEST_TEMPLATE.md .github/CODEOWNERS .github/SECURITY.md .clang-format`
