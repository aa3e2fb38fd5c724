use super::*;

fn config(data_dir: &str) -> Config {
    let folder = testkit::stores::TempFolder::new();
    let file = folder.path().join("adjutant.toml");
    std::fs::write(&file, format!("data_dir = {data_dir:?}\n")).expect("a file");
    let mut config = Config::load(Some(&file), &|_| None).expect("a configuration");
    config.file = Some("/home/mei/.config/adjutant/adjutant.toml".into());
    config
}

const USER: &str = r#"[Unit]
Description=Adjutant, a personal agent
# It is started again for as long as it takes; doctor and the log say why it ended.
StartLimitIntervalSec=0

[Service]
Type=exec
ExecStart="/home/mei/bin/adjutant" --config "/home/mei/.config/adjutant/adjutant.toml" serve
# Keys that the configuration names by a variable, one NAME=value a line, mode 0600.
EnvironmentFile=-/home/mei/.config/adjutant/key.env
Restart=on-failure
# Twice as long each time, from 2 s to 5 min; before systemd 254 always 2 s.
RestartSec=2
RestartSteps=8
RestartMaxDelaySec=300
TimeoutStopSec=30
UMask=0077
# It writes into its own folder alone. Its tool servers too: add the folders that they need.
ProtectSystem=strict
ProtectHome=read-only
ReadWritePaths="/home/mei/.local/share/adjutant"
PrivateTmp=yes
NoNewPrivileges=yes
RestrictAddressFamilies=AF_UNIX AF_INET AF_INET6 AF_NETLINK
RestrictSUIDSGID=yes
RestrictRealtime=yes
LockPersonality=yes
SystemCallArchitectures=native
# With all its tool servers.
MemoryMax=2G
TasksMax=1024

[Install]
WantedBy=default.target
"#;

#[test]
fn the_unit_is_whole_for_a_user_and_for_the_machine() {
    let config = config("/home/mei/.local/share/adjutant");
    let program = Path::new("/home/mei/bin/adjutant");
    let of_user = unit(program, &config, &Manager::User).expect("a unit");
    assert_eq!(of_user, USER);
    let of_machine = unit(program, &config, &Manager::System("mei".into())).expect("a unit");
    let wanted = USER
        .replace(
            "# It is started",
            "Wants=network-online.target\nAfter=network-online.target\n# It is started",
        )
        .replace("Restart=on", "User=mei\nCapabilityBoundingSet=\nRestart=on")
        .replace("default.target", "multi-user.target");
    assert_eq!(of_machine, wanted);
}

#[test]
fn paths_stay_one_word_and_nothing_slips_into_the_unit() {
    let odd = config("/data/100% mine \"x\" $HOME");
    let text = unit(Path::new("/opt/my $tools/adjutant"), &odd, &Manager::User).expect("a unit");
    assert!(text.contains("\nExecStart=\"/opt/my $$tools/adjutant\" --config "), "{text}");
    assert!(text.contains("\nReadWritePaths=\"/data/100%% mine \\\"x\\\" $HOME\"\n"), "{text}");
    let plain = config("/data");
    let broken = unit(Path::new("/opt/a\nUser=root/adjutant"), &plain, &Manager::User);
    assert!(broken.is_err_and(|error| error.to_string().contains("no unit can hold")));
    let user = unit(Path::new("/a"), &plain, &Manager::System("root\nX=1".into()));
    assert!(user.is_err_and(|error| error.to_string().contains("no user's name")));
}

#[test]
fn systemd_itself_finds_nothing_wrong_with_it_where_it_is_there() {
    let folder = testkit::stores::TempFolder::new();
    let config = config(&folder.path().display().to_string());
    let program = std::env::current_exe().expect("a program");
    let file = folder.path().join(NAME);
    let text = unit(&program, &config, &Manager::System("root".into())).expect("a unit");
    std::fs::write(&file, text).expect("a file");
    let verify = |file: &Path| {
        Command::new("systemd-analyze").args(["verify", "--man=no"]).arg(file).output().ok()
    };
    let Some(found) = verify(&file) else {
        eprintln!("skipped: systemd-analyze because it is not installed");
        return;
    };
    let complaints = |output: &std::process::Output| -> Vec<String> {
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        let ours = said.lines().filter(|line| line.contains(NAME));
        // Older ones than 254 do not know these two and go on without.
        let known = ["RestartSteps", "RestartMaxDelaySec"];
        let ours = ours.filter(|line| known.iter().all(|known| !line.contains(known)));
        ours.map(str::to_owned).collect()
    };
    assert_eq!(complaints(&found), [""; 0]);
    let wrong = std::fs::read_to_string(&file).expect("a unit").replace("Type=exec", "Type=exac");
    std::fs::write(&file, wrong).expect("a file");
    let found = verify(&file).expect("it is there");
    assert!(!complaints(&found).is_empty(), "it looks: {found:?}");
}
