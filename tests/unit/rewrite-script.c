/* rewrite-script - what becomes of scripts and modules, and what must stay. */
#include "web/rewrite/rewrite_script.h"

#include "rewrite-fixture.h"

static void classic(const char *input, const char *want) {
    fixture_expect(REWRITE_CLASSIC_SCRIPT, input, want);
}

static void module(const char *input, const char *want) {
    fixture_expect(REWRITE_MODULE_SCRIPT, input, want);
}

static void stays(const char *input) {
    classic(input, input);
    module(input, input);
}

static void a_free_location_is_asked_for(void **state) {
    (void)state;
    classic("location", "__mnemon_location");
    classic("location.href = location", "__mnemon_location.href = __mnemon_location");
    classic("f(...location)", "f(...__mnemon_location)");
    classic("if (a) location = b; else location = c",
            "if (a) __mnemon_location = b; else __mnemon_location = c");
    classic("{location=b}", "{__mnemon_location=b}");
    classic("function f(){location}", "function f(){__mnemon_location}");
    classic("a\nlocation = b", "a\n__mnemon_location = b");
    classic("a ? location : b", "a ? __mnemon_location : b");
    classic("a ? b : location", "a ? b : __mnemon_location");
    classic("switch(a){case location: b}", "switch(a){case __mnemon_location: b}");
    classic("`${location}${`${{location}}`}`", "`${__mnemon_location}${`${{location:__mnemon_location}}`}`");
    classic("location /* x */ . href", "__mnemon_location /* x */ . href");
}

static void a_member_location_is_asked_for(void **state) {
    (void)state;
    classic("window.location", "window.__mnemon_location");
    classic("a?.location.href", "a?.__mnemon_location.href");
    classic("a\n  .location\n", "a\n  .__mnemon_location\n");
    classic("a.location = b", "a.__mnemon_location = b");
    stays("a.location(b)");
    stays("a[\"location\"]");
    stays("class A { m() { super.location } }");
    stays("class A { #location; m() { this.#location } }");
}

static void keys_methods_fields_and_labels_stay(void **state) {
    (void)state;
    stays("x = {location: 1, a: {location: 2}, \"location\": 3}");
    stays("x = {location() {}, get location() {}, set location(a) {}, async location() {}, *location() {}}");
    stays("class A { location = 1; static location\n location() {}\n get location() { return 1 } }");
    stays("location: for (;;) { break location; continue location }");
    stays("var myLocation, location_, $location, Location, locations");
    stays("\\u006cocation; l\\u{6f}cation");
    classic("class A { a = location; [location] = 1 }",
            "class A { a = __mnemon_location; [__mnemon_location] = 1 }");
    classic("x = {a: location, [location]: 1}", "x = {a: __mnemon_location, [__mnemon_location]: 1}");
}

static void shorthand_keeps_its_key(void **state) {
    (void)state;
    classic("x = {location}", "x = {location:__mnemon_location}");
    classic("f({a, location, b})", "f({a, location:__mnemon_location, b})");
    classic("({location = 1} = a)", "({location:__mnemon_location = 1} = a)");
    classic("return {location}", "return {location:__mnemon_location}");
    classic("a => ({location})", "a => ({location:__mnemon_location})");
    classic("a ? {location} : {b: {location}}",
            "a ? {location:__mnemon_location} : {b: {location:__mnemon_location}}");
    classic("const {location, a} = b", "const {__mnemon_location, a} = b");
    classic("var {location: a} = b", "var {__mnemon_location: a} = b");
    classic("a => {location}", "a => {__mnemon_location}");
    classic("switch(a){default: {location}}", "switch(a){default: {__mnemon_location}}");
}

static void own_variables_are_renamed_alike(void **state) {
    (void)state;
    classic("function f(location) { return location }",
            "function f(__mnemon_location) { return __mnemon_location }");
    classic("let location = 1, x = location", "let __mnemon_location = 1, x = __mnemon_location");
    classic("location => location", "__mnemon_location => __mnemon_location");
    classic("function location() {} location()", "function __mnemon_location() {} __mnemon_location()");
}

static void frames_above_are_hidden(void **state) {
    (void)state;
    classic("if (top !== self) top.location = self.location",
            "if (__mnemon_top !== self) __mnemon_top.__mnemon_location = self.__mnemon_location");
    classic("self != top", "self != __mnemon_top");
    classic("window == parent", "window == __mnemon_parent");
    classic("window.top", "window.__mnemon_top");
    classic("window.self !== window.top", "window.self !== window.__mnemon_top");
    classic("globalThis?.parent.top", "globalThis?.__mnemon_parent.__mnemon_top");
    classic("parent.postMessage(a)", "__mnemon_parent.postMessage(a)");
    classic("top === parent", "__mnemon_top === __mnemon_parent");
    stays("rect.top; el.parent; x = {top, parent: 1}; top = 5; top.left; f(top)");
    stays("var top = 1; if (top == self) top.document");
    stays("function f(a, parent) { return parent.document }");
    stays("parent => parent.document");
    stays("a.window.top; node.parent.top");
}

static void what_is_no_code_stays(void **state) {
    (void)state;
    stays("// location\n/* location\n location */ 'location' + \"location\" + `location \\${location}`");
    stays("'\\'location' + \"\\\\\" + '\\\nlocation'");
    stays("x = /location/; f(/[/]location/); return /location/g.test(a)");
    stays("if (a) /location/.test(b)");
    stays("x = a ? /location/ : /[\\]/]location/");
    stays("{}\n/location/.test(a)");
    stays("#!/usr/bin/env location\n");
    stays("1.5e+location; 0x1e+1; .5.location");
    classic("a++\n/location/g", "a++\n/__mnemon_location/g");
    classic("a / location / b", "a / __mnemon_location / b");
    classic("(a) / location / b", "(a) / __mnemon_location / b");
    classic("a[0] / location", "a[0] / __mnemon_location");
    classic("x = {} / location / 1", "x = {} / __mnemon_location / 1");
    classic("a\n<!-- location\nlocation\n--> location\nlocation",
            "a\n<!-- location\n__mnemon_location\n--> location\n__mnemon_location");
    classic("while (n --> location) {}", "while (n --> __mnemon_location) {}");
    classic("'</script>' + location", "'</script>' + __mnemon_location");
}

static void what_is_not_understood_passes(void **state) {
    (void)state;
    stays(") location");
    stays("'a\n' + location");
    stays("(] location");
    stays("/a\nlocation");
}

static void dynamic_imports_are_asked_for(void **state) {
    (void)state;
    classic("import('./a')", "__mnemon_import(\"http://h/d/p?q\")('./a')");
    module("await import (a).then(location)",
           "await __mnemon_import(\"http://h/d/p?q\") (a).then(__mnemon_location)");
    stays("a.import('b'); x = {import(a) {}, import: 1}; class A { import(a) {} static import(a) {} }");
    module("new URL('a', import.meta.url)", "new URL('a', __mnemon_meta(import.meta.url))");
    module("import . meta . url + 1", "__mnemon_meta(import . meta . url) + 1");
    module("import.meta.url = 1; import.meta.url += 1; import.meta.url++; import.meta.urls; import.meta.env",
           "import.meta.url = 1; import.meta.url += 1; import.meta.url++; import.meta.urls; import.meta.env");
}

static void specifiers_become_replay_urls(void **state) {
    (void)state;
    module("import '/a.js'", "import '/w/1esm_/http://h/a.js'");
    module("import a, {b as c} from \"https://o/x\";import * as d from'//o/y'",
           "import a, {b as c} from \"/w/1esm_/https://o/x\";import * as d from'/w/1esm_/http://o/y'");
    module("export * from '/a'; export {b} from '/c'",
           "export * from '/w/1esm_/http://h/a'; export {b} from '/w/1esm_/http://h/c'");
    module("import '/it%27s'; import \"/it's\"; import '/a?\\''",
           "import '/w/1esm_/http://h/it%27s'; import \"/w/1esm_/http://h/it's\"; import '/a?\\''");
    module("import a from './b'; import '../c'; import d from 'e'; import 'data:,'; f('/a'); from('/a')",
           "import a from './b'; import '../c'; import d from 'e'; import 'data:,'; f('/a'); from('/a')");
    module("import a from '/a'\nfrom ('/b')", "import a from '/w/1esm_/http://h/a'\nfrom ('/b')");
    classic("import '/a'", "import '/a'");
}

static void imports_and_exports_keep_their_names(void **state) {
    (void)state;
    module("import {location} from 'a'; location",
           "import {location as __mnemon_location} from 'a'; __mnemon_location");
    module("import {location as a, b as location} from 'c'",
           "import {location as a, b as __mnemon_location} from 'c'");
    module("import location from 'a'", "import __mnemon_location from 'a'");
    module("export {location, a as location}; export {location as b} from 'c'; export {location} from 'd'",
           "export {__mnemon_location as location,__mnemon_location, a as location}; export {location as b} "
           "from 'c'; "
           "export {location} from 'd'");
    module("export const location = 1",
           "export const __mnemon_location = 1\nexport{__mnemon_location as location};");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_free_location_is_asked_for),
        cmocka_unit_test(a_member_location_is_asked_for),
        cmocka_unit_test(keys_methods_fields_and_labels_stay),
        cmocka_unit_test(shorthand_keeps_its_key),
        cmocka_unit_test(own_variables_are_renamed_alike),
        cmocka_unit_test(frames_above_are_hidden),
        cmocka_unit_test(what_is_no_code_stays),
        cmocka_unit_test(what_is_not_understood_passes),
        cmocka_unit_test(dynamic_imports_are_asked_for),
        cmocka_unit_test(specifiers_become_replay_urls),
        cmocka_unit_test(imports_and_exports_keep_their_names),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
