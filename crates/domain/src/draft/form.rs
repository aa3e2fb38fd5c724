//! A draft as it is written in JSON, by the model or in the frozen bytes.

use super::{Check, Condition, Draft, DraftError, Subscription, Wakeup};
use crate::effect::GrantDraft;
use crate::schedule::{Kind, Missed, Rule, RuleForm};

#[derive(Clone, serde::Serialize, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct DraftForm {
    title: String,
    goal: String,
    conditions: Vec<Condition>,
    #[serde(default)]
    schedules: Vec<WakeupForm>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    subscriptions: Vec<Subscription>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    grants: Vec<GrantDraft>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    until: Option<String>,
}

/// The fields of a [`RuleForm`] stand among its own, as serde cannot refuse unknown fields of a
/// flattened struct.
#[derive(Clone, serde::Serialize, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct WakeupForm {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    when: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    kind: Option<Kind>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    at: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    weekday: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    day: Option<i64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    cron: Option<String>,
    prompt: String,
    #[serde(default, skip_serializing_if = "is_default")]
    run_missed: Missed,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    check: Option<super::check::CheckForm>,
}

fn is_default(missed: &Missed) -> bool {
    *missed == Missed::default()
}

impl TryFrom<DraftForm> for Draft {
    type Error = DraftError;

    fn try_from(form: DraftForm) -> Result<Self, DraftError> {
        let DraftForm { title, goal, conditions, schedules, subscriptions, grants, until } = form;
        let schedules =
            schedules.into_iter().map(Wakeup::try_from).collect::<Result<Vec<_>, DraftError>>()?;
        Ok(Draft { title, goal, conditions, schedules, subscriptions, grants, until })
    }
}

impl From<Draft> for DraftForm {
    fn from(draft: Draft) -> Self {
        let Draft { title, goal, conditions, schedules, subscriptions, grants, until } = draft;
        let schedules = schedules.into_iter().map(WakeupForm::from).collect();
        DraftForm { title, goal, conditions, schedules, subscriptions, grants, until }
    }
}

impl TryFrom<WakeupForm> for Wakeup {
    type Error = DraftError;

    fn try_from(form: WakeupForm) -> Result<Self, DraftError> {
        let WakeupForm { when, kind, at, weekday, day, cron, prompt, run_missed, check } = form;
        let others =
            kind.is_some() || at.is_some() || weekday.is_some() || day.is_some() || cron.is_some();
        let rule = match (when, kind) {
            (Some(_), _) if others => return Err(DraftError::WhenTwice),
            (Some(when), _) => Rule::from_words(&when)?,
            (None, Some(kind)) => Rule::try_from(RuleForm { kind, at, weekday, day, cron })?,
            (None, None) => return Err(DraftError::When),
        };
        let check = check.map(Check::try_from).transpose()?;
        Ok(Wakeup { rule, prompt, run_missed, check })
    }
}

impl From<Wakeup> for WakeupForm {
    fn from(wakeup: Wakeup) -> Self {
        let RuleForm { kind, at, weekday, day, cron } = RuleForm::from(wakeup.rule);
        WakeupForm {
            when: None,
            kind: Some(kind),
            at,
            weekday,
            day,
            cron,
            prompt: wakeup.prompt,
            run_missed: wakeup.run_missed,
            check: wakeup.check.map(Into::into),
        }
    }
}
