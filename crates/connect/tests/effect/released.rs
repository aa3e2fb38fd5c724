//! What a person released call by call: tools that no manifest describes (R6), and reads that reveal (P5).

use super::*;

const RELEASED: &str = r#"
[tool.search]
effect = "read"
[tool.ask]
effect  = "read"
objects = { page = "page" }
reveals = ["words", "page"]
issues  = { page = "pages[].id" }
[tool.plain]
effect  = "read"
objects = { page = "page" }
reveals = ["words"]
"#;

/// A server that offers `note` besides; its schema is another once `$SCRATCH.new` is there.
const DESK: &str = r#"
hello
while next; do
  case "$line" in
    *tools/list*)
      kind=string; [ -e "$SCRATCH.new" ] && kind=integer
      reply '{"tools":[{"name":"search","inputSchema":{"type":"object"}},{"name":"no good","inputSchema":{"type":"object"}},{"name":"note","description":"Leaves a note.","inputSchema":{"type":"object","properties":{"text":{"type":"'$kind'"}}},"annotations":{"readOnlyHint":true,"destructiveHint":false}}]}';;
    *tools/call*) printf '%s\n' "$line" >> "$SCRATCH"; reply '{"content":[{"type":"text","text":"Left it."}]}';;
  esac
done
"#;

fn desk(script: &str) -> Vendor {
    vendor_of("sh", script, RELEASED, limits())
}

fn map(arguments: Value) -> Map<String, Value> {
    arguments.as_object().cloned().unwrap()
}

impl Desk {
    /// Sends what was frozen, as the records would let it.
    fn release(&self, vendor: &Connectors, frozen: &Frozen) -> Acted {
        let permit = permit(&self.harness, frozen, OPERATION);
        let clock = self.harness.clock.clone();
        self.runtime.block_on(vendor.act(permit, &*clock, LIMIT))
    }

    fn note(&self, vendor: &Vendor) -> Frozen {
        self.runtime.block_on(vendor.connectors.schema("desk.note")).unwrap();
        let arguments = map(json!({ "text": "Late." }));
        let note = vendor.connectors.intended("desk.note", &arguments).unwrap().unwrap();
        assert_eq!(note.needs, []);
        freeze(&note.spec, &arguments, &[], None, None).unwrap()
    }
}

#[test]
fn a_tool_without_an_entry_is_found_by_looking_and_only_a_person_releases_it() {
    let (desk, vendor) = (Desk::open(), self::desk(DESK));
    let at = &vendor.connectors;
    let arguments = map(json!({ "text": "Late." }));
    assert_eq!(at.servers().collect::<Vec<_>>(), ["desk"]);
    assert_eq!(at.intended("desk.note", &arguments), None, "nobody has looked");
    let refusal = at.wanted("desk.note", arguments.clone()).unwrap_err().to_string();
    assert!(refusal.contains("look it up with tool_schema first"), "{refusal}");

    let schema = |name: &str| desk.runtime.block_on(at.schema(name)).unwrap();
    let each = "The person releases each call of it, one by one, and says what came of it";
    assert_eq!(
        schema("desk.*").description,
        format!("No manifest describes these. {each}: desk.note")
    );
    let note = schema("desk.note");
    let said = format!("No manifest describes this tool. {each}. Leaves a note.");
    let parameters = r#"{"properties":{"text":{"type":"string"}},"type":"object"}"#;
    assert_eq!((note.description, note.parameters), (said, parameters.to_owned()));
    let none = desk.runtime.block_on(at.schema("desk.notes")).unwrap_err();
    assert!(none.to_string().starts_with("there is no tool `desk.notes`"), "{none}");

    let frozen = desk.note(&vendor);
    let (content, entry) = (&frozen.content, frozen.content.entry);
    assert_eq!((content.effect, &content.arguments), (Effect::Human, &arguments));
    assert!(at.stands("desk.note", Effect::Human, entry));
    assert!(!at.stands("desk.note", Effect::Human, Digest::of(b"another")));
    // A hint of the server makes no read of it, nor a tool with a spec that a grant could name.
    assert!(at.wanted("desk.note", arguments).is_err());
    assert_eq!((at.spec("desk.note"), at.revealed("desk.note", &Map::new())), (None, None));

    let seen = other("it answered what proves nothing by itself: Left it.");
    assert_eq!(desk.release(at, &frozen), acted(seen, "Left it."));
    let sent: Value = serde_json::from_str(&vendor.noted()).unwrap();
    assert_eq!(sent["params"]["name"], json!("note"));
    assert_eq!(sent["params"]["arguments"], json!({ "text": "Late." }), "no id of ours travels");
}

#[test]
fn a_changed_tool_or_a_new_entry_voids_what_was_released() {
    let desk = Desk::open();
    let vendor = self::desk(DESK);
    let frozen = desk.note(&vendor);
    let entry = frozen.content.entry;
    std::fs::write(vendor.scratch.with_extension("new"), "").unwrap();
    assert!(vendor.connectors.stands("desk.note", Effect::Human, entry), "as far as is known");
    let why =
        "no manifest has an entry of this tool, and its server does not offer what was released";
    assert_eq!(desk.release(&vendor.connectors, &frozen), unsent(why));
    assert!(!vendor.connectors.stands("desk.note", Effect::Human, entry));
    assert_eq!(vendor.noted(), "");

    // After a restart nobody has looked, and it is looked at before it is sent.
    let vendor = self::desk(DESK);
    assert!(vendor.connectors.stands("desk.note", Effect::Human, entry));
    assert!(!vendor.connectors.stands("desk.note", Effect::Paid, entry), "an entry that is gone");
    assert!(!vendor.connectors.stands("far.note", Effect::Human, entry));
    assert_eq!(desk.release(&vendor.connectors, &frozen).answer, "Left it.");

    for effect in ["read", "reversible", "human"] {
        let entry_now = format!("[tool.note]\neffect = \"{effect}\"");
        let vendor = vendor_of("sh", DESK, &entry_now, limits());
        assert!(!vendor.connectors.stands("desk.note", Effect::Human, entry), "{effect}");
        let why = "the connector's manifest says something else of this tool now";
        assert_eq!(desk.release(&vendor.connectors, &frozen), unsent(why));
        assert_eq!(vendor.noted(), "");
    }
    let dies = DESK.replace("printf '%s\\n' \"$line\" >> \"$SCRATCH\"; reply", "exit 1; reply");
    let lost = lost("the connector's process ended before it answered");
    assert_eq!(desk.release(&self::desk(&dies).connectors, &frozen), lost);
}

#[test]
fn a_read_that_reveals_is_outward_once_it_is_released_and_any_answer_is_its_evidence() {
    let desk = Desk::open();
    let says = |result: &Value| self::desk(&format!("hello; next; reply '{result}'; next"));
    let ask = |at: &Connectors, arguments: Value| at.revealed("desk.ask", &map(arguments));
    let at = self::desk("exit 1").connectors;
    assert_eq!(at.revealed("desk.search", &Map::new()), None);
    assert_eq!(ask(&at, json!({})).unwrap().unwrap().spec.effect, Effect::Outward);
    assert_eq!(
        at.intended("desk.ask", &map(json!({ "words": "x" }))),
        None,
        "as a read it is none"
    );

    // What it reveals need not be issued, what it only names must.
    let arguments = json!({ "words": "my address", "page": "made-up" });
    let call = ask(&at, arguments.clone()).unwrap().unwrap();
    assert_eq!((call.needs, call.spec.objects.len()), (Vec::new(), 0));
    assert_eq!(call.spec.once_per, ["page", "words"], "another question is another errand");
    let plain = at.revealed("desk.plain", &map(arguments.clone())).unwrap().unwrap();
    assert_eq!(plain.needs.len(), 1);
    let wanted = at.wanted("desk.ask", map(json!({ "words": "x" }))).unwrap();
    assert!(wanted.cleared(|_| false).is_err(), "and as a read it is refused");

    let frozen = freeze(&call.spec, &map(arguments), &[], None, None).unwrap();
    let data = json!({ "pages": [{ "id": "p-1" }] });
    let told = |answer: &str| acted(Observation::Answered, answer);
    let issued = Issued {
        kind: "page".to_owned(),
        id: "p-1".to_owned(),
        snapshot: json!({ "id": "p-1" }),
        expires_at: None,
    };
    let answered = desk.release(&says(&structured(&data)).connectors, &frozen);
    assert_eq!(answered, Acted { issued: vec![issued], ..told(&data.to_string()) });
    let no = json!({ "content": [{ "type": "text", "text": "no such page" }], "isError": true });
    assert_eq!(desk.release(&says(&no).connectors, &frozen), told("The tool failed: no such page"));
    let refuses = r#"hello; next; printf '{"jsonrpc":"2.0","id":%s,"error":{"code":-1,"message":"no"}}\n' "$id"; next"#;
    assert_eq!(
        desk.release(&self::desk(refuses).connectors, &frozen),
        told("`desk.ask` refused the call (-1): no. Compare the arguments with its schema")
    );
    assert_eq!(
        desk.release(&self::desk("hello; next; exit 1").connectors, &frozen),
        lost("the connector's process ended before it answered")
    );
    let other = vendor_of("sh", "exit 1", &RELEASED.replace("\"page\"]", "]"), limits());
    let why = "the connector's manifest says something else of this tool now";
    assert_eq!(desk.release(&other.connectors, &frozen), unsent(why));
}

#[test]
fn an_answer_that_refuses_our_key_says_so_beside_what_it_proves() {
    let desk = Desk::open();
    let key =
        json!({ "content": [{ "type": "text", "text": "401 Unauthorized" }], "isError": true });
    let Acted { seen, refused_key, .. } = desk.act(&vendor(&says(&key)));
    assert_eq!(seen, other("it answered that it failed"));
    let why = refused_key.unwrap();
    assert!(why.starts_with("connector `desk` refuses the key it was given: 401"), "{why}");
}
