"""Types of codex 0.171.0's app-server protocol, for the checkers. Sans-IO.

Written by `python -m generated.regenerate`; never edited. Derived from Codex's own
schema, Copyright OpenAI, Apache License 2.0 (`LICENSE.codex` beside this file).
"""

from typing import Literal, NotRequired, TypeAlias, TypedDict


AbsolutePathBuf: TypeAlias = "str"


class ActivePermissionProfile(TypedDict):
    extends: "NotRequired[str | None]"
    id: "str"


class AdditionalContextEntry(TypedDict):
    kind: "AdditionalContextKind"
    name: "NotRequired[str | None]"
    value: "str"


AdditionalContextKind: TypeAlias = "Literal['untrusted', 'application']"


class AdditionalFileSystemPermissions(TypedDict):
    entries: "NotRequired[list[FileSystemSandboxEntry] | None]"
    globScanMaxDepth: "NotRequired[int | None]"
    read: "NotRequired[list[LegacyAppPathString] | None]"
    write: "NotRequired[list[LegacyAppPathString] | None]"


class AdditionalNetworkPermissions(TypedDict):
    enabled: "NotRequired[bool | None]"


class AdditionalPermissionProfile(TypedDict):
    fileSystem: "NotRequired[AdditionalFileSystemPermissions | None]"
    network: "NotRequired[AdditionalNetworkPermissions | None]"


AgentMessageDelivery: TypeAlias = "Literal['async']"


class AgentMessageDeltaNotification(TypedDict):
    delta: "str"
    itemId: "str"
    threadId: "str"
    turnId: "str"


AgentMessageDisplay: TypeAlias = "AgentMessageDisplayShow | AgentMessageDisplayHide | AgentMessageDisplayBlock"


class AgentMessageDisplayBlock(TypedDict):
    mode: "Literal['block']"
    reason: "BlockReason"
    version: "Literal[1]"


class AgentMessageDisplayHide(TypedDict):
    mode: "Literal['hide']"
    replacement: "AnswerReplacement"
    version: "Literal[1]"


class AgentMessageDisplayShow(TypedDict):
    annotation: "NotRequired[AnswerAnnotation | None]"
    mode: "Literal['show']"
    trustedContacts: "TrustedContacts"
    version: "Literal[1]"


class AgentMessageModeration(TypedDict):
    display: "NotRequired[AgentMessageDisplay | None]"
    moderated: "bool"


AllowDenyRequirement: TypeAlias = "Literal['allow', 'deny']"


class AnalyticsConfig(TypedDict):
    enabled: "NotRequired[bool | None]"


AnswerAnnotation: TypeAlias = "AnswerAnnotationWellbeingHelpline"


class AnswerAnnotationWellbeingHelpline(TypedDict):
    kind: "Literal['wellbeingHelpline']"
    subject: "HelplineSubject"


AnswerReplacement: TypeAlias = "AnswerReplacementWellbeingPromptHelpline"


class AnswerReplacementWellbeingPromptHelpline(TypedDict):
    kind: "Literal['wellbeingPromptHelpline']"


AppToolApproval: TypeAlias = "Literal['auto', 'prompt', 'writes', 'approve']"


ApprovalsReviewer: TypeAlias = "Literal['user', 'auto_review', 'guardian_subagent']"


class AppsConfig(TypedDict):
    _default: "NotRequired[AppsDefaultConfig | None]"


class AppsDefaultConfig(TypedDict):
    approvals_reviewer: "NotRequired[ApprovalsReviewer | None]"
    default_tools_approval_mode: "NotRequired[AppToolApproval | None]"
    destructive_enabled: "NotRequired[bool]"
    enabled: "NotRequired[bool]"
    open_world_enabled: "NotRequired[bool]"


AskForApproval: TypeAlias = "Literal['untrusted', 'on-request', 'never'] | AskForApprovalGranular"


class AskForApprovalGranular(TypedDict):
    granular: "dict[str, object]"


class AsyncUserInputQuestion(TypedDict):
    options: "NotRequired[list[str] | None]"
    title: "str"


class AuthRecoveryNotification(TypedDict):
    message: "str"
    provider: "str"
    threadId: "str"
    turnId: "str"


AutoCompactTokenLimitScope: TypeAlias = "Literal['total'] | Literal['body_after_prefix']"


AutoReviewDecisionSource: TypeAlias = "Literal['agent']"


BlockReason: TypeAlias = "BlockReasonProtection | BlockReasonCyber"


class BlockReasonCyber(TypedDict):
    kind: "Literal['cyber']"
    trustedAccess: "NotRequired[bool | None]"


class BlockReasonProtection(TypedDict):
    kind: "Literal['protection']"
    protectionType: "str"


class BrowserUseConfig(TypedDict):
    allow_history_access: "NotRequired[bool | None]"
    default_origin_policy: "NotRequired[BrowserUseOriginPolicyConfig | None]"
    origins: "NotRequired[dict[str, BrowserUseOriginPolicyConfig] | None]"


class BrowserUseOriginPolicyConfig(TypedDict):
    access: "NotRequired[AllowDenyRequirement | None]"
    downloads: "NotRequired[AllowDenyRequirement | None]"
    full_cdp_access: "NotRequired[AllowDenyRequirement | None]"
    uploads: "NotRequired[AllowDenyRequirement | None]"


class ByteRange(TypedDict):
    end: "int"
    start: "int"


CapabilityRootLocation: TypeAlias = "CapabilityRootLocationEnvironment"


class CapabilityRootLocationEnvironment(TypedDict):
    environmentId: "str"
    path: "str"
    type: "Literal['environment']"


class ClientInfo(TypedDict):
    name: "str"
    title: "NotRequired[str | None]"
    version: "str"


CodexErrorInfo: TypeAlias = "Literal['contextWindowExceeded', 'sessionBudgetExceeded', 'usageLimitExceeded', 'rateLimitExceeded', 'flexUnavailable', 'serverOverloaded', 'modelNotFound', 'policyCapacityUnavailable', 'cyberPolicy', 'bioPolicy', 'misalignmentPolicyViolation', 'tooManyDenials', 'internalServerError', 'unauthorized', 'badRequest', 'threadRollbackFailed', 'sandboxError', 'other'] | Literal['inferenceHookDenied'] | CodexErrorInfoHttpConnectionFailed | CodexErrorInfoResponseStreamConnectionFailed | CodexErrorInfoResponseStreamDisconnected | CodexErrorInfoResponseTooManyFailedAttempts | CodexErrorInfoActiveTurnNotSteerable | str | dict[str, object]"


class CodexErrorInfoActiveTurnNotSteerable(TypedDict):
    activeTurnNotSteerable: "dict[str, object]"


class CodexErrorInfoHttpConnectionFailed(TypedDict):
    httpConnectionFailed: "dict[str, object]"


class CodexErrorInfoResponseStreamConnectionFailed(TypedDict):
    responseStreamConnectionFailed: "dict[str, object]"


class CodexErrorInfoResponseStreamDisconnected(TypedDict):
    responseStreamDisconnected: "dict[str, object]"


class CodexErrorInfoResponseTooManyFailedAttempts(TypedDict):
    responseTooManyFailedAttempts: "dict[str, object]"


class CollabAgentState(TypedDict):
    message: "NotRequired[str | None]"
    status: "CollabAgentStatus"


CollabAgentStatus: TypeAlias = "Literal['pendingInit', 'running', 'interrupted', 'completed', 'errored', 'shutdown', 'notFound']"


CollabAgentTool: TypeAlias = "Literal['spawnAgent', 'sendInput', 'resumeAgent', 'wait', 'closeAgent', 'sendMessage', 'followupTask', 'interruptAgent', 'listAgents']"


CollabAgentToolCallStatus: TypeAlias = "Literal['inProgress', 'completed', 'failed', 'interrupted']"


class CollaborationMode(TypedDict):
    mode: "ModeKind"
    settings: "Settings"


CommandAction: TypeAlias = "CommandActionRead | CommandActionListFiles | CommandActionSearch | CommandActionUnknown"


class CommandActionListFiles(TypedDict):
    command: "str"
    path: "NotRequired[str | None]"
    type: "Literal['listFiles']"


class CommandActionRead(TypedDict):
    command: "str"
    name: "str"
    path: "LegacyAppPathString"
    type: "Literal['read']"


class CommandActionSearch(TypedDict):
    command: "str"
    path: "NotRequired[str | None]"
    query: "NotRequired[str | None]"
    type: "Literal['search']"


class CommandActionUnknown(TypedDict):
    command: "str"
    type: "Literal['unknown']"


class CommandExecParams(TypedDict):
    command: "list[str]"
    cwd: "NotRequired[str | None]"
    disableOutputCap: "NotRequired[bool]"
    disableTimeout: "NotRequired[bool]"
    env: "NotRequired[dict[str, str | None] | None]"
    outputBytesCap: "NotRequired[int | None]"
    permissionProfile: "NotRequired[str | None]"
    processId: "NotRequired[str | None]"
    sandboxPolicy: "NotRequired[SandboxPolicy | None]"
    size: "NotRequired[CommandExecTerminalSize | None]"
    streamStdin: "NotRequired[bool]"
    streamStdoutStderr: "NotRequired[bool]"
    timeoutMs: "NotRequired[int | None]"
    tty: "NotRequired[bool]"


class CommandExecResponse(TypedDict):
    exitCode: "int"
    stderr: "str"
    stdout: "str"


class CommandExecTerminalSize(TypedDict):
    cols: "int"
    rows: "int"


CommandExecutionApprovalDecision: TypeAlias = "Literal['accept'] | Literal['acceptForSession'] | CommandExecutionApprovalDecisionAcceptWithExecpolicyAmendment | CommandExecutionApprovalDecisionApplyNetworkPolicyAmendment | Literal['decline'] | Literal['cancel']"


class CommandExecutionApprovalDecisionAcceptWithExecpolicyAmendment(TypedDict):
    acceptWithExecpolicyAmendment: "dict[str, object]"


class CommandExecutionApprovalDecisionApplyNetworkPolicyAmendment(TypedDict):
    applyNetworkPolicyAmendment: "dict[str, object]"


CommandExecutionApprovalKind: TypeAlias = "Literal['command', 'writeStdin'] | Literal['humanCommand']"


class CommandExecutionOutputDeltaNotification(TypedDict):
    delta: "str"
    itemId: "str"
    threadId: "str"
    turnId: "str"


class CommandExecutionRequestApprovalParams(TypedDict):
    additionalPermissions: "NotRequired[AdditionalPermissionProfile | None]"
    approvalId: "NotRequired[str | None]"
    availableDecisions: "NotRequired[list[CommandExecutionApprovalDecision] | None]"
    command: "NotRequired[str | None]"
    commandActions: "NotRequired[list[CommandAction] | None]"
    cwd: "NotRequired[LegacyAppPathString | None]"
    environmentId: "NotRequired[str | None]"
    itemId: "str"
    kind: "NotRequired[CommandExecutionApprovalKind]"
    networkApprovalContext: "NotRequired[NetworkApprovalContext | None]"
    proposedExecpolicyAmendment: "NotRequired[list[str] | None]"
    proposedNetworkPolicyAmendments: "NotRequired[list[NetworkPolicyAmendment] | None]"
    reason: "NotRequired[str | None]"
    startedAtMs: "int"
    threadId: "str"
    turnId: "str"


class CommandExecutionRequestApprovalResponse(TypedDict):
    decision: "CommandExecutionApprovalDecision"


CommandExecutionSource: TypeAlias = "Literal['agent', 'userShell', 'unifiedExecStartup', 'unifiedExecInteraction']"


CommandExecutionStatus: TypeAlias = "Literal['inProgress', 'completed', 'failed', 'declined']"


class ComputerUseConfig(TypedDict):
    default_app_access: "NotRequired[AllowDenyRequirement | None]"
    macos: "NotRequired[ComputerUseMacosConfig | None]"
    windows: "NotRequired[ComputerUseWindowsConfig | None]"


class ComputerUseMacosConfig(TypedDict):
    bundle_ids: "NotRequired[dict[str, AllowDenyRequirement] | None]"


class ComputerUseWindowsConfig(TypedDict):
    aumids: "NotRequired[dict[str, AllowDenyRequirement] | None]"
    exes: "NotRequired[list[ComputerUseWindowsExeConfig] | None]"


class ComputerUseWindowsExeConfig(TypedDict):
    access: "AllowDenyRequirement"
    binary_name: "NotRequired[str | None]"
    product_name: "str"
    publisher_name: "str"


class Config(TypedDict):
    analytics: "NotRequired[AnalyticsConfig | None]"
    approval_policy: "NotRequired[AskForApproval | None]"
    approvals_reviewer: "NotRequired[ApprovalsReviewer | None]"
    apps: "NotRequired[AppsConfig | None]"
    browser_use: "NotRequired[BrowserUseConfig | None]"
    client_search_provider: "NotRequired[WebSearchProvider | None]"
    compact_prompt: "NotRequired[str | None]"
    computer_use: "NotRequired[ComputerUseConfig | None]"
    desktop: "NotRequired[dict[str, object] | None]"
    developer_instructions: "NotRequired[str | None]"
    forced_chatgpt_workspace_id: "NotRequired[ForcedChatgptWorkspaceIds | None]"
    forced_login_method: "NotRequired[ForcedLoginMethod | None]"
    instructions: "NotRequired[str | None]"
    model: "NotRequired[str | None]"
    model_auto_compact_token_limit: "NotRequired[int | None]"
    model_auto_compact_token_limit_scope: "NotRequired[AutoCompactTokenLimitScope | None]"
    model_context_window: "NotRequired[int | None]"
    model_provider: "NotRequired[str | None]"
    model_reasoning_effort: "NotRequired[ReasoningEffort | None]"
    model_reasoning_summary: "NotRequired[ReasoningSummary | None]"
    model_verbosity: "NotRequired[Verbosity | None]"
    review_model: "NotRequired[str | None]"
    sandbox_mode: "NotRequired[SandboxMode | None]"
    sandbox_workspace_write: "NotRequired[SandboxWorkspaceWrite | None]"
    service_tier: "NotRequired[str | None]"
    tools: "NotRequired[ToolsV2 | None]"
    web_search: "NotRequired[WebSearchMode | None]"


class ConfigLayer(TypedDict):
    config: "object"
    disabledReason: "NotRequired[str | None]"
    name: "ConfigLayerSource"
    version: "str"


class ConfigLayerMetadata(TypedDict):
    name: "ConfigLayerSource"
    version: "str"


ConfigLayerSource: TypeAlias = "ConfigLayerSourcePackagedDefaults | ConfigLayerSourceMdm | ConfigLayerSourceSystem | ConfigLayerSourceEnterpriseManaged | ConfigLayerSourceUser | ConfigLayerSourceProject | ConfigLayerSourceSessionFlags | ConfigLayerSourceLegacyManagedConfigTomlFromFile | ConfigLayerSourceLegacyManagedConfigTomlFromMdm"


class ConfigLayerSourceEnterpriseManaged(TypedDict):
    id: "str"
    name: "str"
    type: "Literal['enterpriseManaged']"


class ConfigLayerSourceLegacyManagedConfigTomlFromFile(TypedDict):
    file: "AbsolutePathBuf"
    type: "Literal['legacyManagedConfigTomlFromFile']"


class ConfigLayerSourceLegacyManagedConfigTomlFromMdm(TypedDict):
    type: "Literal['legacyManagedConfigTomlFromMdm']"


class ConfigLayerSourceMdm(TypedDict):
    domain: "str"
    key: "str"
    type: "Literal['mdm']"


class ConfigLayerSourcePackagedDefaults(TypedDict):
    file: "AbsolutePathBuf"
    type: "Literal['packagedDefaults']"


class ConfigLayerSourceProject(TypedDict):
    dotCodexFolder: "AbsolutePathBuf"
    type: "Literal['project']"


class ConfigLayerSourceSessionFlags(TypedDict):
    type: "Literal['sessionFlags']"


class ConfigLayerSourceSystem(TypedDict):
    file: "AbsolutePathBuf"
    type: "Literal['system']"


class ConfigLayerSourceUser(TypedDict):
    file: "AbsolutePathBuf"
    profile: "NotRequired[str | None]"
    type: "Literal['user']"


class ConfigReadParams(TypedDict):
    cwd: "NotRequired[str | None]"
    includeLayers: "NotRequired[bool]"


class ConfigReadResponse(TypedDict):
    config: "Config"
    layers: "NotRequired[list[ConfigLayer] | None]"
    origins: "dict[str, ConfigLayerMetadata]"


class ConfigWarningNotification(TypedDict):
    details: "NotRequired[str | None]"
    path: "NotRequired[str | None]"
    range: "NotRequired[TextRange | None]"
    summary: "str"


CyberAccessProgram: TypeAlias = "Literal['standard', 'daybreakBlue', 'daybreakRed']"


DynamicToolCallOutputContentItem: TypeAlias = "DynamicToolCallOutputContentItemInputText | DynamicToolCallOutputContentItemInputImage | DynamicToolCallOutputContentItemInputAudio"


class DynamicToolCallOutputContentItemInputAudio(TypedDict):
    audioUrl: "str"
    type: "Literal['inputAudio']"


class DynamicToolCallOutputContentItemInputImage(TypedDict):
    imageUrl: "str"
    type: "Literal['inputImage']"


class DynamicToolCallOutputContentItemInputText(TypedDict):
    text: "str"
    type: "Literal['inputText']"


class DynamicToolCallParams(TypedDict):
    arguments: "object"
    callId: "str"
    namespace: "NotRequired[str | None]"
    threadId: "str"
    tool: "str"
    turnId: "str"


class DynamicToolCallResponse(TypedDict):
    contentItems: "list[DynamicToolCallOutputContentItem]"
    success: "bool"


DynamicToolCallStatus: TypeAlias = "Literal['inProgress', 'completed', 'failed']"


DynamicToolNamespaceTool: TypeAlias = "DynamicToolNamespaceToolFunction"


class DynamicToolNamespaceToolFunction(TypedDict):
    deferLoading: "NotRequired[bool]"
    description: "str"
    inputSchema: "object"
    name: "str"
    type: "Literal['function']"


DynamicToolSpec: TypeAlias = "DynamicToolSpecFunction | DynamicToolSpecNamespace"


class DynamicToolSpecFunction(TypedDict):
    deferLoading: "NotRequired[bool]"
    description: "str"
    inputSchema: "object"
    name: "str"
    type: "Literal['function']"


class DynamicToolSpecNamespace(TypedDict):
    description: "str"
    name: "str"
    tools: "list[DynamicToolNamespaceTool]"
    type: "Literal['namespace']"


class ErrorNotification(TypedDict):
    error: "TurnError"
    threadId: "str"
    turnId: "str"
    willRetry: "bool"


FileChangeApprovalDecision: TypeAlias = "Literal['accept'] | Literal['acceptForSession'] | Literal['decline'] | Literal['cancel']"


class FileChangeRequestApprovalParams(TypedDict):
    grantRoot: "NotRequired[str | None]"
    itemId: "str"
    reason: "NotRequired[str | None]"
    startedAtMs: "int"
    threadId: "str"
    turnId: "str"


class FileChangeRequestApprovalResponse(TypedDict):
    decision: "FileChangeApprovalDecision"


FileSystemAccessMode: TypeAlias = "Literal['read', 'write', 'deny']"


FileSystemPath: TypeAlias = "FileSystemPathPath | FileSystemPathGlobPattern | FileSystemPathSpecial"


class FileSystemPathGlobPattern(TypedDict):
    pattern: "str"
    type: "Literal['glob_pattern']"


class FileSystemPathPath(TypedDict):
    path: "LegacyAppPathString"
    type: "Literal['path']"


class FileSystemPathSpecial(TypedDict):
    type: "Literal['special']"
    value: "FileSystemSpecialPath"


class FileSystemSandboxEntry(TypedDict):
    access: "FileSystemAccessMode"
    path: "FileSystemPath"


FileSystemSpecialPath: TypeAlias = "FileSystemSpecialPathRoot | FileSystemSpecialPathMinimal | FileSystemSpecialPathProjectRoots | FileSystemSpecialPathTmpdir | FileSystemSpecialPathSlashTmp | FileSystemSpecialPathUnknown"


class FileSystemSpecialPathMinimal(TypedDict):
    kind: "Literal['minimal']"


class FileSystemSpecialPathProjectRoots(TypedDict):
    kind: "Literal['project_roots']"
    subpath: "NotRequired[LegacyAppPathString | None]"


class FileSystemSpecialPathRoot(TypedDict):
    kind: "Literal['root']"


class FileSystemSpecialPathSlashTmp(TypedDict):
    kind: "Literal['slash_tmp']"


class FileSystemSpecialPathTmpdir(TypedDict):
    kind: "Literal['tmpdir']"


class FileSystemSpecialPathUnknown(TypedDict):
    kind: "Literal['unknown']"
    path: "str"
    subpath: "NotRequired[LegacyAppPathString | None]"


class FileUpdateChange(TypedDict):
    diff: "str"
    kind: "PatchChangeKind"
    path: "str"


ForcedChatgptWorkspaceIds: TypeAlias = "str | list[str]"


ForcedLoginMethod: TypeAlias = "Literal['chatgpt', 'api']"


FunctionCallOutputBody: TypeAlias = "str | list[FunctionCallOutputContentItem]"


FunctionCallOutputContentItem: TypeAlias = "FunctionCallOutputContentItemInputText | FunctionCallOutputContentItemInputImage | FunctionCallOutputContentItemInputAudio | FunctionCallOutputContentItemEncryptedContent"


class FunctionCallOutputContentItemEncryptedContent(TypedDict):
    encrypted_content: "str"
    type: "Literal['encrypted_content']"


class FunctionCallOutputContentItemInputAudio(TypedDict):
    type: "Literal['input_audio']"
    audio_url: "NotRequired[str]"
    file_id: "NotRequired[str]"


class FunctionCallOutputContentItemInputImage(TypedDict):
    detail: "NotRequired[ImageDetail | None]"
    type: "Literal['input_image']"
    image_url: "NotRequired[str]"
    file_id: "NotRequired[str]"


class FunctionCallOutputContentItemInputText(TypedDict):
    text: "str"
    type: "Literal['input_text']"


FuzzyFileSearchMatchType: TypeAlias = "Literal['file', 'directory']"


class FuzzyFileSearchParams(TypedDict):
    cancellationToken: "NotRequired[str | None]"
    query: "str"
    roots: "list[str]"


class FuzzyFileSearchResponse(TypedDict):
    files: "list[FuzzyFileSearchResult]"


class FuzzyFileSearchResult(TypedDict):
    file_name: "str"
    indices: "NotRequired[list[int] | None]"
    match_type: "FuzzyFileSearchMatchType"
    path: "str"
    root: "str"
    score: "int"


class GitInfo(TypedDict):
    branch: "NotRequired[str | None]"
    originUrl: "NotRequired[str | None]"
    sha: "NotRequired[str | None]"


class GrantedPermissionProfile(TypedDict):
    fileSystem: "NotRequired[AdditionalFileSystemPermissions | None]"
    network: "NotRequired[AdditionalNetworkPermissions | None]"


class GuardianApprovalReview(TypedDict):
    rationale: "NotRequired[str | None]"
    riskLevel: "NotRequired[GuardianRiskLevel | None]"
    status: "GuardianApprovalReviewStatus"
    userAuthorization: "NotRequired[GuardianUserAuthorization | None]"


GuardianApprovalReviewAction: TypeAlias = "GuardianApprovalReviewActionCommand | GuardianApprovalReviewActionExecve | GuardianApprovalReviewActionWriteStdin | GuardianApprovalReviewActionApplyPatch | GuardianApprovalReviewActionNetworkAccess | GuardianApprovalReviewActionMcpToolCall | GuardianApprovalReviewActionRequestPermissions"


class GuardianApprovalReviewActionApplyPatch(TypedDict):
    cwd: "LegacyAppPathString"
    files: "list[LegacyAppPathString]"
    type: "Literal['applyPatch']"


class GuardianApprovalReviewActionCommand(TypedDict):
    command: "str"
    cwd: "LegacyAppPathString"
    source: "GuardianCommandSource"
    type: "Literal['command']"


class GuardianApprovalReviewActionExecve(TypedDict):
    argv: "list[str]"
    cwd: "AbsolutePathBuf"
    program: "str"
    source: "GuardianCommandSource"
    type: "Literal['execve']"


class GuardianApprovalReviewActionMcpToolCall(TypedDict):
    connectorId: "NotRequired[str | None]"
    connectorName: "NotRequired[str | None]"
    server: "str"
    toolName: "str"
    toolTitle: "NotRequired[str | None]"
    type: "Literal['mcpToolCall']"


class GuardianApprovalReviewActionNetworkAccess(TypedDict):
    host: "str"
    port: "int"
    protocol: "NetworkApprovalProtocol"
    target: "str"
    type: "Literal['networkAccess']"


class GuardianApprovalReviewActionRequestPermissions(TypedDict):
    permissions: "RequestPermissionProfile"
    reason: "NotRequired[str | None]"
    type: "Literal['requestPermissions']"


class GuardianApprovalReviewActionWriteStdin(TypedDict):
    approvalId: "str"
    cwd: "LegacyAppPathString"
    processId: "str"
    stdin: "str"
    type: "Literal['writeStdin']"


GuardianApprovalReviewStatus: TypeAlias = "Literal['inProgress', 'approved', 'denied', 'timedOut', 'aborted']"


GuardianCommandSource: TypeAlias = "Literal['shell', 'unifiedExec']"


GuardianRiskLevel: TypeAlias = "Literal['low', 'medium', 'high', 'critical']"


GuardianUserAuthorization: TypeAlias = "Literal['unknown', 'low', 'medium', 'high']"


class GuardianWarningNotification(TypedDict):
    message: "str"
    threadId: "str"


HelplineSubject: TypeAlias = "Literal['answer', 'prompt']"


class HookCompletedNotification(TypedDict):
    run: "HookRunSummary"
    threadId: "str"
    turnId: "NotRequired[str | None]"


HookEventName: TypeAlias = "Literal['preModelRequest', 'postModelRequest', 'preToolUse', 'permissionRequest', 'postToolUse', 'preCompact', 'postCompact', 'sessionStart', 'sessionEnd', 'userPromptSubmit', 'subagentStart', 'subagentStop', 'stop', 'interrupt']"


HookExecutionMode: TypeAlias = "Literal['sync', 'async']"


HookHandlerType: TypeAlias = "Literal['command', 'mcpTool', 'prompt', 'agent']"


class HookOutputEntry(TypedDict):
    kind: "HookOutputEntryKind"
    text: "str"


HookOutputEntryKind: TypeAlias = "Literal['warning', 'stop', 'feedback', 'context', 'error']"


class HookPromptFragment(TypedDict):
    hookRunId: "str"
    text: "str"


HookRunStatus: TypeAlias = "Literal['running', 'completed', 'failed', 'blocked', 'stopped']"


class HookRunSummary(TypedDict):
    completedAt: "NotRequired[int | None]"
    displayOrder: "int"
    durationMs: "NotRequired[int | None]"
    entries: "list[HookOutputEntry]"
    eventName: "HookEventName"
    executionMode: "HookExecutionMode"
    handlerType: "HookHandlerType"
    id: "str"
    scope: "HookScope"
    source: "NotRequired[HookSource]"
    sourcePath: "LegacyAppPathString"
    startedAt: "int"
    status: "HookRunStatus"
    statusMessage: "NotRequired[str | None]"


HookScope: TypeAlias = "Literal['thread', 'turn']"


HookSource: TypeAlias = "Literal['system', 'user', 'project', 'mdm', 'sessionFlags', 'plugin', 'cloudRequirements', 'cloudManagedConfig', 'legacyManagedConfigFile', 'legacyManagedConfigMdm', 'unknown']"


ImageDetail: TypeAlias = "Literal['auto', 'low', 'high', 'original']"


ImageGenerationFailure: TypeAlias = "ImageGenerationFailureUsageLimitExceeded"


class ImageGenerationFailureUsageLimitExceeded(TypedDict):
    limitId: "str"
    resetsAt: "NotRequired[int | None]"
    type: "Literal['usageLimitExceeded']"


class ImageGenerationInputImage(TypedDict):
    path: "AbsolutePathBuf"
    sha256: "str"


class InitializeCapabilities(TypedDict):
    experimentalApi: "NotRequired[bool]"
    explicitGatewayOauth: "NotRequired[bool]"
    extensions: "NotRequired[dict[str, object] | None]"
    mcpServerOpenaiFormElicitation: "NotRequired[bool]"
    optOutNotificationMethods: "NotRequired[list[str] | None]"
    requestAttestation: "NotRequired[bool]"
    requiredHumanApproval: "NotRequired[bool]"


class InitializeParams(TypedDict):
    capabilities: "NotRequired[InitializeCapabilities | None]"
    clientInfo: "ClientInfo"


class InitializeResponse(TypedDict):
    codexHome: "AbsolutePathBuf"
    platformFamily: "str"
    platformOs: "str"
    userAgent: "str"


InputModality: TypeAlias = "Literal['text'] | Literal['image'] | Literal['audio']"


class ItemCompletedNotification(TypedDict):
    completedAtMs: "int"
    contentTokenCount: "NotRequired[int | None]"
    item: "ThreadItem"
    threadId: "str"
    turnId: "str"


class ItemGuardianApprovalReviewCompletedNotification(TypedDict):
    action: "GuardianApprovalReviewAction"
    completedAtMs: "int"
    decisionSource: "AutoReviewDecisionSource"
    review: "GuardianApprovalReview"
    reviewId: "str"
    startedAtMs: "int"
    targetItemId: "NotRequired[str | None]"
    threadId: "str"
    turnId: "str"


class ItemStartedNotification(TypedDict):
    item: "ThreadItem"
    startedAtMs: "int"
    threadId: "str"
    turnId: "str"


LegacyAppPathString: TypeAlias = "str"


McpAppDisplayMode: TypeAlias = "Literal['inline', 'fullscreen']"


class McpAppUi(TypedDict):
    preferredModelDisplayMode: "McpAppDisplayMode"
    resourceUri: "str"


McpElicitationArrayType: TypeAlias = "Literal['array']"


class McpElicitationBooleanSchema(TypedDict):
    default: "NotRequired[bool | None]"
    description: "NotRequired[str | None]"
    title: "NotRequired[str | None]"
    type: "McpElicitationBooleanType"


McpElicitationBooleanType: TypeAlias = "Literal['boolean']"


class McpElicitationConstOption(TypedDict):
    const: "str"
    title: "str"


McpElicitationEnumSchema: TypeAlias = "McpElicitationSingleSelectEnumSchema | McpElicitationMultiSelectEnumSchema | McpElicitationLegacyTitledEnumSchema"


class McpElicitationLegacyTitledEnumSchema(TypedDict):
    default: "NotRequired[str | None]"
    description: "NotRequired[str | None]"
    enum: "list[str]"
    enumNames: "NotRequired[list[str] | None]"
    title: "NotRequired[str | None]"
    type: "McpElicitationStringType"


McpElicitationMultiSelectEnumSchema: TypeAlias = "McpElicitationUntitledMultiSelectEnumSchema | McpElicitationTitledMultiSelectEnumSchema"


class McpElicitationNumberSchema(TypedDict):
    default: "NotRequired[float | None]"
    description: "NotRequired[str | None]"
    maximum: "NotRequired[float | None]"
    minimum: "NotRequired[float | None]"
    title: "NotRequired[str | None]"
    type: "McpElicitationNumberType"


McpElicitationNumberType: TypeAlias = "Literal['number', 'integer']"


McpElicitationObjectType: TypeAlias = "Literal['object']"


McpElicitationPrimitiveSchema: TypeAlias = "McpElicitationEnumSchema | McpElicitationStringSchema | McpElicitationNumberSchema | McpElicitationBooleanSchema"


McpElicitationSchema = TypedDict("McpElicitationSchema", {
    "$schema": "NotRequired[str | None]",
    "properties": "dict[str, McpElicitationPrimitiveSchema]",
    "required": "NotRequired[list[str] | None]",
    "type": "McpElicitationObjectType",
})


McpElicitationSingleSelectEnumSchema: TypeAlias = "McpElicitationUntitledSingleSelectEnumSchema | McpElicitationTitledSingleSelectEnumSchema"


McpElicitationStringFormat: TypeAlias = "Literal['email', 'uri', 'date', 'date-time']"


class McpElicitationStringSchema(TypedDict):
    default: "NotRequired[str | None]"
    description: "NotRequired[str | None]"
    format: "NotRequired[McpElicitationStringFormat | None]"
    maxLength: "NotRequired[int | None]"
    minLength: "NotRequired[int | None]"
    title: "NotRequired[str | None]"
    type: "McpElicitationStringType"


McpElicitationStringType: TypeAlias = "Literal['string']"


class McpElicitationTitledEnumItems(TypedDict):
    anyOf: "list[McpElicitationConstOption]"


class McpElicitationTitledMultiSelectEnumSchema(TypedDict):
    default: "NotRequired[list[str] | None]"
    description: "NotRequired[str | None]"
    items: "McpElicitationTitledEnumItems"
    maxItems: "NotRequired[int | None]"
    minItems: "NotRequired[int | None]"
    title: "NotRequired[str | None]"
    type: "McpElicitationArrayType"


class McpElicitationTitledSingleSelectEnumSchema(TypedDict):
    default: "NotRequired[str | None]"
    description: "NotRequired[str | None]"
    oneOf: "list[McpElicitationConstOption]"
    title: "NotRequired[str | None]"
    type: "McpElicitationStringType"


class McpElicitationUntitledEnumItems(TypedDict):
    enum: "list[str]"
    type: "McpElicitationStringType"


class McpElicitationUntitledMultiSelectEnumSchema(TypedDict):
    default: "NotRequired[list[str] | None]"
    description: "NotRequired[str | None]"
    items: "McpElicitationUntitledEnumItems"
    maxItems: "NotRequired[int | None]"
    minItems: "NotRequired[int | None]"
    title: "NotRequired[str | None]"
    type: "McpElicitationArrayType"


class McpElicitationUntitledSingleSelectEnumSchema(TypedDict):
    default: "NotRequired[str | None]"
    description: "NotRequired[str | None]"
    enum: "list[str]"
    title: "NotRequired[str | None]"
    type: "McpElicitationStringType"


McpServerElicitationAction: TypeAlias = "Literal['accept', 'decline', 'cancel']"


McpServerElicitationRequestParams: TypeAlias = "McpServerElicitationRequestParamsOpenaiUserVerification | McpServerElicitationRequestParamsForm | McpServerElicitationRequestParamsOpenaiForm | McpServerElicitationRequestParamsUrl"


class McpServerElicitationRequestParamsForm(TypedDict):
    environmentId: "NotRequired[str | None]"
    serverName: "str"
    threadId: "str"
    turnId: "NotRequired[str | None]"
    _meta: "NotRequired[object]"
    message: "str"
    mode: "Literal['form']"
    requestedSchema: "McpElicitationSchema"


class McpServerElicitationRequestParamsOpenaiForm(TypedDict):
    environmentId: "NotRequired[str | None]"
    serverName: "str"
    threadId: "str"
    turnId: "NotRequired[str | None]"
    _meta: "NotRequired[object]"
    message: "str"
    mode: "Literal['openaiForm']"
    requestedSchema: "object"


class McpServerElicitationRequestParamsOpenaiUserVerification(TypedDict):
    environmentId: "NotRequired[str | None]"
    serverName: "str"
    threadId: "str"
    turnId: "NotRequired[str | None]"
    _meta: "NotRequired[object]"
    challenge: "str"
    description: "str"
    mode: "Literal['openai/userVerification']"
    title: "str"


class McpServerElicitationRequestParamsUrl(TypedDict):
    environmentId: "NotRequired[str | None]"
    serverName: "str"
    threadId: "str"
    turnId: "NotRequired[str | None]"
    _meta: "NotRequired[object]"
    elicitationId: "str"
    message: "str"
    mode: "Literal['url']"
    url: "str"


class McpServerElicitationRequestResponse(TypedDict):
    _meta: "NotRequired[object]"
    action: "McpServerElicitationAction"
    content: "NotRequired[object]"


McpServerStartupFailureReason: TypeAlias = "Literal['reauthenticationRequired']"


McpServerStartupState: TypeAlias = "Literal['starting', 'ready', 'failed', 'cancelled']"


class McpServerStatusUpdatedNotification(TypedDict):
    environmentId: "NotRequired[str | None]"
    error: "NotRequired[str | None]"
    failureReason: "NotRequired[McpServerStartupFailureReason | None]"
    name: "str"
    status: "McpServerStartupState"
    threadId: "NotRequired[str | None]"


class McpToolCallAppContext(TypedDict):
    actionName: "NotRequired[str | None]"
    appName: "NotRequired[str | None]"
    connectorId: "str"
    linkId: "NotRequired[str | None]"
    resourceUri: "NotRequired[str | None]"


class McpToolCallError(TypedDict):
    message: "str"


class McpToolCallResult(TypedDict):
    _meta: "NotRequired[object]"
    content: "list[object]"
    structuredContent: "NotRequired[object]"


McpToolCallStatus: TypeAlias = "Literal['inProgress', 'completed', 'failed']"


class MemoryCitation(TypedDict):
    entries: "list[MemoryCitationEntry]"
    threadIds: "list[str]"


class MemoryCitationEntry(TypedDict):
    lineEnd: "int"
    lineStart: "int"
    note: "str"
    path: "str"


MessagePhase: TypeAlias = "Literal['commentary'] | Literal['partial_answer'] | Literal['final_answer']"


class MisalignmentErrorDetails(TypedDict):
    detailedExplanation: "NotRequired[str | None]"
    errorType: "NotRequired[str | None]"
    reviewTarget: "NotRequired[str | None]"
    steer: "NotRequired[MisalignmentSteer | None]"


class MisalignmentSteer(TypedDict):
    message: "str"


ModeKind: TypeAlias = "Literal['plan', 'default']"


class Model(TypedDict):
    additionalSpeedTiers: "NotRequired[list[str]]"
    availabilityNux: "NotRequired[ModelAvailabilityNux | None]"
    availableAccessPrograms: "NotRequired[ModelAccessPrograms | None]"
    defaultReasoningEffort: "ReasoningEffort"
    defaultServiceTier: "NotRequired[str | None]"
    description: "str"
    displayName: "str"
    hidden: "bool"
    id: "str"
    inputModalities: "NotRequired[list[InputModality]]"
    isDefault: "bool"
    model: "str"
    modelSpecialty: "NotRequired[str | None]"
    multiAgentVersion: "NotRequired[MultiAgentVersion | None]"
    serviceTiers: "NotRequired[list[ModelServiceTier]]"
    supportedReasoningEfforts: "list[ReasoningEffortOption]"
    supportsPersonality: "NotRequired[bool]"
    upgrade: "NotRequired[str | None]"
    upgradeInfo: "NotRequired[ModelUpgradeInfo | None]"


class ModelAccessPrograms(TypedDict):
    cyber: "list[CyberAccessProgram]"


class ModelAvailabilityNux(TypedDict):
    message: "str"


class ModelListParams(TypedDict):
    cursor: "NotRequired[str | None]"
    includeHidden: "NotRequired[bool | None]"
    limit: "NotRequired[int | None]"
    modelProvider: "NotRequired[str | None]"


class ModelListResponse(TypedDict):
    data: "list[Model]"
    nextCursor: "NotRequired[str | None]"


ModelRerouteReason: TypeAlias = "Literal['highRiskCyberActivity']"


class ModelReroutedNotification(TypedDict):
    fromModel: "str"
    reason: "ModelRerouteReason"
    threadId: "str"
    toModel: "str"
    turnId: "str"


class ModelServiceTier(TypedDict):
    description: "str"
    id: "str"
    name: "str"


class ModelUpgradeInfo(TypedDict):
    migrationMarkdown: "NotRequired[str | None]"
    model: "str"
    modelLink: "NotRequired[str | None]"
    retirementAt: "NotRequired[int | None]"
    upgradeCopy: "NotRequired[str | None]"


MultiAgentMode: TypeAlias = "Literal['explicitRequestOnly', 'proactive'] | MultiAgentModeCustom"


class MultiAgentModeCustom(TypedDict):
    custom: "str"


MultiAgentVersion: TypeAlias = "Literal['disabled', 'v1', 'v2']"


NetworkAccess: TypeAlias = "Literal['restricted', 'enabled']"


class NetworkApprovalContext(TypedDict):
    host: "str"
    protocol: "NetworkApprovalProtocol"


NetworkApprovalProtocol: TypeAlias = "Literal['http', 'https', 'socks5Tcp', 'socks5Udp']"


class NetworkPolicyAmendment(TypedDict):
    action: "NetworkPolicyRuleAction"
    host: "str"


NetworkPolicyRuleAction: TypeAlias = "Literal['allow', 'deny']"


PatchApplyStatus: TypeAlias = "Literal['inProgress', 'completed', 'failed', 'declined']"


PatchChangeKind: TypeAlias = "PatchChangeKindAdd | PatchChangeKindDelete | PatchChangeKindUpdate"


class PatchChangeKindAdd(TypedDict):
    type: "Literal['add']"


class PatchChangeKindDelete(TypedDict):
    type: "Literal['delete']"


class PatchChangeKindUpdate(TypedDict):
    move_path: "NotRequired[str | None]"
    type: "Literal['update']"


PermissionGrantScope: TypeAlias = "Literal['turn', 'session']"


class PermissionsRequestApprovalParams(TypedDict):
    cwd: "LegacyAppPathString"
    environmentId: "NotRequired[str | None]"
    itemId: "str"
    permissions: "RequestPermissionProfile"
    reason: "NotRequired[str | None]"
    startedAtMs: "int"
    threadId: "str"
    turnId: "str"


class PermissionsRequestApprovalResponse(TypedDict):
    permissions: "GrantedPermissionProfile"
    scope: "NotRequired[PermissionGrantScope]"
    strictAutoReview: "NotRequired[bool | None]"


Personality: TypeAlias = "Literal['none', 'friendly', 'pragmatic']"


class QueuedSubmission(TypedDict):
    clientUserMessageId: "str"
    id: "str"
    input: "list[UserInput]"
    responsesapiClientMetadata: "NotRequired[dict[str, str] | None]"


ReasoningEffort: TypeAlias = "str"


class ReasoningEffortOption(TypedDict):
    description: "str"
    reasoningEffort: "ReasoningEffort"


ReasoningSummary: TypeAlias = "Literal['auto', 'concise', 'detailed'] | Literal['none']"


class ReasoningSummaryTextDeltaNotification(TypedDict):
    delta: "str"
    itemId: "str"
    summaryIndex: "int"
    threadId: "str"
    turnId: "str"


class ReasoningTextDeltaNotification(TypedDict):
    contentIndex: "int"
    delta: "str"
    itemId: "str"
    threadId: "str"
    turnId: "str"


RequestId: TypeAlias = "str | int"


class RequestPermissionProfile(TypedDict):
    fileSystem: "NotRequired[AdditionalFileSystemPermissions | None]"
    network: "NotRequired[AdditionalNetworkPermissions | None]"


ReviewDelivery: TypeAlias = "Literal['inline']"


class ReviewStartParams(TypedDict):
    delivery: "NotRequired[ReviewDelivery | None]"
    target: "ReviewTarget"
    threadId: "str"


class ReviewStartResponse(TypedDict):
    reviewThreadId: "str"
    turn: "Turn"


ReviewTarget: TypeAlias = "ReviewTargetUncommittedChanges | ReviewTargetBaseBranch | ReviewTargetCommit | ReviewTargetCustom"


class ReviewTargetBaseBranch(TypedDict):
    branch: "str"
    type: "Literal['baseBranch']"


class ReviewTargetCommit(TypedDict):
    sha: "str"
    title: "NotRequired[str | None]"
    type: "Literal['commit']"


class ReviewTargetCustom(TypedDict):
    instructions: "str"
    type: "Literal['custom']"


class ReviewTargetUncommittedChanges(TypedDict):
    type: "Literal['uncommittedChanges']"


SandboxMode: TypeAlias = "Literal['read-only', 'workspace-write', 'danger-full-access']"


SandboxPolicy: TypeAlias = "SandboxPolicyDangerFullAccess | SandboxPolicyReadOnly | SandboxPolicyExternalSandbox | SandboxPolicyWorkspaceWrite"


class SandboxPolicyDangerFullAccess(TypedDict):
    type: "Literal['dangerFullAccess']"


class SandboxPolicyExternalSandbox(TypedDict):
    networkAccess: "NotRequired[NetworkAccess]"
    type: "Literal['externalSandbox']"


class SandboxPolicyReadOnly(TypedDict):
    networkAccess: "NotRequired[bool]"
    type: "Literal['readOnly']"


class SandboxPolicyWorkspaceWrite(TypedDict):
    excludeSlashTmp: "NotRequired[bool]"
    excludeTmpdirEnvVar: "NotRequired[bool]"
    networkAccess: "NotRequired[bool]"
    type: "Literal['workspaceWrite']"
    writableRoots: "NotRequired[list[AbsolutePathBuf]]"


class SandboxWorkspaceWrite(TypedDict):
    exclude_slash_tmp: "NotRequired[bool]"
    exclude_tmpdir_env_var: "NotRequired[bool]"
    network_access: "NotRequired[bool]"
    writable_roots: "NotRequired[list[str]]"


class SelectedCapabilityRoot(TypedDict):
    id: "str"
    location: "CapabilityRootLocation"


class ServerRequestResolvedNotification(TypedDict):
    requestId: "RequestId"
    threadId: "str"


SessionSource: TypeAlias = "Literal['cli', 'vscode', 'exec', 'appServer', 'unknown'] | SessionSourceCustom | SessionSourceSubAgent"


class SessionSourceCustom(TypedDict):
    custom: "str"


class SessionSourceSubAgent(TypedDict):
    subAgent: "SubAgentSource"


class Settings(TypedDict):
    developer_instructions: "NotRequired[str | None]"
    model: "str"
    reasoning_effort: "NotRequired[ReasoningEffort | None]"


SortDirection: TypeAlias = "Literal['asc', 'desc']"


SubAgentActivityKind: TypeAlias = "Literal['started', 'interacted', 'interrupted', 'completed']"


SubAgentSource: TypeAlias = "Literal['review', 'compact', 'memory_consolidation'] | SubAgentSourceThreadSpawn | SubAgentSourceOther"


class SubAgentSourceOther(TypedDict):
    other: "str"


class SubAgentSourceThreadSpawn(TypedDict):
    thread_spawn: "dict[str, object]"


class TerminalInteractionNotification(TypedDict):
    itemId: "str"
    processId: "str"
    stdin: "str"
    threadId: "str"
    turnId: "str"


class TextElement(TypedDict):
    byteRange: "ByteRange"
    placeholder: "NotRequired[str | None]"


class TextPosition(TypedDict):
    column: "int"
    line: "int"


class TextRange(TypedDict):
    end: "TextPosition"
    start: "TextPosition"


class Thread(TypedDict):
    agentNickname: "NotRequired[str | None]"
    agentRole: "NotRequired[str | None]"
    attachedToThreadId: "NotRequired[str | None]"
    canAcceptDirectInput: "NotRequired[bool | None]"
    cliVersion: "str"
    createdAt: "int"
    cwd: "AbsolutePathBuf"
    daybreakEnabled: "NotRequired[bool | None]"
    environments: "NotRequired[list[ThreadEnvironment] | None]"
    ephemeral: "bool"
    extra: "NotRequired[ThreadExtra | None]"
    forkedFromId: "NotRequired[str | None]"
    gitInfo: "NotRequired[GitInfo | None]"
    historyMode: "NotRequired[ThreadHistoryMode]"
    id: "str"
    model: "NotRequired[str | None]"
    modelProvider: "str"
    name: "NotRequired[str | None]"
    originator: "NotRequired[str | None]"
    parentThreadId: "NotRequired[str | None]"
    path: "NotRequired[str | None]"
    preview: "str"
    projectId: "str | None"
    reasoningEffort: "NotRequired[ReasoningEffort | None]"
    recencyAt: "NotRequired[int | None]"
    section: "NotRequired[ThreadSection | None]"
    sectionEnteredAt: "NotRequired[int | None]"
    sessionId: "str"
    source: "SessionSource"
    status: "ThreadStatus"
    threadSource: "NotRequired[ThreadSource | None]"
    turns: "list[Turn]"
    updatedAt: "int"


ThreadActiveFlag: TypeAlias = "Literal['waitingOnApproval', 'waitingOnUserInput']"


class ThreadArchiveParams(TypedDict):
    threadId: "str"


class ThreadArchiveResponse(TypedDict):
    pass


class ThreadArchivedNotification(TypedDict):
    threadId: "str"


class ThreadBackgroundTerminal(TypedDict):
    command: "str"
    cpuPercent: "NotRequired[float | None]"
    cwd: "LegacyAppPathString"
    itemId: "str"
    osPid: "NotRequired[int | None]"
    processId: "str"
    rssKb: "NotRequired[int | None]"


class ThreadBackgroundTerminalsCleanParams(TypedDict):
    threadId: "str"


class ThreadBackgroundTerminalsCleanResponse(TypedDict):
    pass


class ThreadBackgroundTerminalsListParams(TypedDict):
    cursor: "NotRequired[str | None]"
    limit: "NotRequired[int | None]"
    threadId: "str"


class ThreadBackgroundTerminalsListResponse(TypedDict):
    data: "list[ThreadBackgroundTerminal]"
    nextCursor: "NotRequired[str | None]"


class ThreadBackgroundTerminalsTerminateParams(TypedDict):
    processId: "str"
    threadId: "str"


class ThreadBackgroundTerminalsTerminateResponse(TypedDict):
    terminated: "bool"


class ThreadClosedNotification(TypedDict):
    threadId: "str"


class ThreadCompactStartParams(TypedDict):
    threadId: "str"


class ThreadCompactStartResponse(TypedDict):
    pass


class ThreadDeleteParams(TypedDict):
    threadId: "str"


class ThreadDeleteResponse(TypedDict):
    pass


class ThreadDeletedNotification(TypedDict):
    threadId: "str"


class ThreadEnvironment(TypedDict):
    cwd: "LegacyAppPathString"
    environmentId: "str"
    runtimeWorkspaceRoots: "list[LegacyAppPathString]"


class ThreadExtra(TypedDict):
    pass


class ThreadForkParams(TypedDict):
    approvalPolicy: "NotRequired[AskForApproval | None]"
    approvalsReviewer: "NotRequired[ApprovalsReviewer | None]"
    attachToSource: "NotRequired[bool]"
    baseInstructions: "NotRequired[str | None]"
    beforeTurnId: "NotRequired[str | None]"
    config: "NotRequired[dict[str, object] | None]"
    cwd: "NotRequired[str | None]"
    deferGoalContinuation: "NotRequired[bool]"
    developerInstructions: "NotRequired[str | None]"
    ephemeral: "NotRequired[bool]"
    excludeTurns: "NotRequired[bool]"
    experimentalDisablePredictionMcp: "NotRequired[bool]"
    experimentalPredictionMode: "NotRequired[bool]"
    lastTurnId: "NotRequired[str | None]"
    model: "NotRequired[str | None]"
    modelProvider: "NotRequired[str | None]"
    path: "NotRequired[str | None]"
    permissions: "NotRequired[str | None]"
    runtimeWorkspaceRoots: "NotRequired[list[AbsolutePathBuf] | None]"
    sandbox: "NotRequired[SandboxMode | None]"
    serviceTier: "NotRequired[str | None]"
    threadId: "str"
    threadSource: "NotRequired[ThreadSource | None]"


class ThreadForkResponse(TypedDict):
    activePermissionProfile: "NotRequired[ActivePermissionProfile | None]"
    approvalPolicy: "AskForApproval"
    approvalsReviewer: "ApprovalsReviewer"
    cwd: "AbsolutePathBuf"
    disabledPluginIds: "NotRequired[list[str]]"
    instructionSources: "NotRequired[list[LegacyAppPathString]]"
    model: "str"
    modelProvider: "str"
    multiAgentMode: "NotRequired[MultiAgentMode]"
    reasoningEffort: "NotRequired[ReasoningEffort | None]"
    runtimeWorkspaceRoots: "NotRequired[list[AbsolutePathBuf]]"
    sandbox: "SandboxPolicy"
    serviceTier: "NotRequired[str | None]"
    thread: "Thread"


class ThreadGoal(TypedDict):
    createdAt: "int"
    objective: "str"
    status: "ThreadGoalStatus"
    threadId: "str"
    timeUsedSeconds: "int"
    tokenBudget: "NotRequired[int | None]"
    tokensUsed: "int"
    updatedAt: "int"


class ThreadGoalClearParams(TypedDict):
    origin: "NotRequired[ThreadGoalMutationOrigin | None]"
    threadId: "str"


class ThreadGoalClearResponse(TypedDict):
    cleared: "bool"


class ThreadGoalClearedNotification(TypedDict):
    threadId: "str"


class ThreadGoalGetParams(TypedDict):
    threadId: "str"


class ThreadGoalGetResponse(TypedDict):
    goal: "NotRequired[ThreadGoal | None]"


ThreadGoalMutationOrigin: TypeAlias = "Literal['user', 'automatic']"


class ThreadGoalSetParams(TypedDict):
    objective: "NotRequired[str | None]"
    origin: "NotRequired[ThreadGoalMutationOrigin | None]"
    status: "NotRequired[ThreadGoalStatus | None]"
    threadId: "str"
    tokenBudget: "NotRequired[int | None]"


class ThreadGoalSetResponse(TypedDict):
    goal: "ThreadGoal"


ThreadGoalStatus: TypeAlias = "Literal['active', 'paused', 'blocked', 'usageLimited', 'budgetLimited', 'complete']"


class ThreadGoalUpdatedNotification(TypedDict):
    goal: "ThreadGoal"
    threadId: "str"
    turnId: "NotRequired[str | None]"


ThreadHistoryMode: TypeAlias = "Literal['legacy', 'paginated']"


ThreadItem: TypeAlias = "ThreadItemUserMessage | ThreadItemHookPrompt | ThreadItemAgentMessage | ThreadItemFunctionCallOutput | ThreadItemPlan | ThreadItemReasoning | ThreadItemCommandExecution | ThreadItemFileChange | ThreadItemMcpToolCall | ThreadItemDynamicToolCall | ThreadItemCollabAgentToolCall | ThreadItemSubAgentActivity | ThreadItemWebSearch | ThreadItemImageView | ThreadItemSleep | ThreadItemImageGeneration | ThreadItemEnteredReviewMode | ThreadItemExitedReviewMode | ThreadItemContextCompaction"


class ThreadItemAgentMessage(TypedDict):
    completedAtMs: "NotRequired[int | None]"
    startedAtMs: "NotRequired[int | None]"
    delivery: "NotRequired[AgentMessageDelivery | None]"
    id: "str"
    memoryCitation: "NotRequired[MemoryCitation | None]"
    moderation: "NotRequired[AgentMessageModeration | None]"
    phase: "NotRequired[MessagePhase | None]"
    questions: "NotRequired[list[AsyncUserInputQuestion] | None]"
    text: "str"
    type: "Literal['agentMessage']"


class ThreadItemCollabAgentToolCall(TypedDict):
    completedAtMs: "NotRequired[int | None]"
    startedAtMs: "NotRequired[int | None]"
    agentsStates: "dict[str, CollabAgentState]"
    id: "str"
    model: "NotRequired[str | None]"
    prompt: "NotRequired[str | None]"
    reasoningEffort: "NotRequired[ReasoningEffort | None]"
    receiverThreadIds: "list[str]"
    senderThreadId: "str"
    status: "CollabAgentToolCallStatus"
    tool: "CollabAgentTool"
    type: "Literal['collabAgentToolCall']"


class ThreadItemCommandExecution(TypedDict):
    completedAtMs: "NotRequired[int | None]"
    startedAtMs: "NotRequired[int | None]"
    aggregatedOutput: "NotRequired[str | None]"
    command: "str"
    commandActions: "list[CommandAction]"
    cwd: "LegacyAppPathString"
    durationMs: "NotRequired[int | None]"
    exitCode: "NotRequired[int | None]"
    id: "str"
    pluginId: "NotRequired[str | None]"
    processId: "NotRequired[str | None]"
    scriptPath: "NotRequired[str | None]"
    source: "NotRequired[CommandExecutionSource]"
    status: "CommandExecutionStatus"
    type: "Literal['commandExecution']"


class ThreadItemContextCompaction(TypedDict):
    completedAtMs: "NotRequired[int | None]"
    startedAtMs: "NotRequired[int | None]"
    id: "str"
    type: "Literal['contextCompaction']"


class ThreadItemDynamicToolCall(TypedDict):
    completedAtMs: "NotRequired[int | None]"
    startedAtMs: "NotRequired[int | None]"
    arguments: "object"
    contentItems: "NotRequired[list[DynamicToolCallOutputContentItem] | None]"
    durationMs: "NotRequired[int | None]"
    id: "str"
    namespace: "NotRequired[str | None]"
    status: "DynamicToolCallStatus"
    success: "NotRequired[bool | None]"
    tool: "str"
    type: "Literal['dynamicToolCall']"


class ThreadItemEnteredReviewMode(TypedDict):
    completedAtMs: "NotRequired[int | None]"
    startedAtMs: "NotRequired[int | None]"
    id: "str"
    review: "str"
    type: "Literal['enteredReviewMode']"


class ThreadItemEntry(TypedDict):
    completedAtMs: "NotRequired[int | None]"
    item: "ThreadItem"
    outputDeferred: "NotRequired[bool]"
    startedAtMs: "NotRequired[int | None]"
    turnId: "str"


class ThreadItemExitedReviewMode(TypedDict):
    completedAtMs: "NotRequired[int | None]"
    startedAtMs: "NotRequired[int | None]"
    id: "str"
    review: "str"
    type: "Literal['exitedReviewMode']"


class ThreadItemFileChange(TypedDict):
    completedAtMs: "NotRequired[int | None]"
    startedAtMs: "NotRequired[int | None]"
    changes: "list[FileUpdateChange]"
    id: "str"
    status: "PatchApplyStatus"
    type: "Literal['fileChange']"


class ThreadItemFunctionCallOutput(TypedDict):
    completedAtMs: "NotRequired[int | None]"
    startedAtMs: "NotRequired[int | None]"
    id: "str"
    name: "str"
    namespace: "NotRequired[str | None]"
    output: "FunctionCallOutputBody"
    type: "Literal['functionCallOutput']"


class ThreadItemHookPrompt(TypedDict):
    completedAtMs: "NotRequired[int | None]"
    startedAtMs: "NotRequired[int | None]"
    fragments: "list[HookPromptFragment]"
    id: "str"
    type: "Literal['hookPrompt']"


class ThreadItemImageGeneration(TypedDict):
    completedAtMs: "NotRequired[int | None]"
    startedAtMs: "NotRequired[int | None]"
    failure: "NotRequired[ImageGenerationFailure | None]"
    generationId: "NotRequired[str | None]"
    id: "str"
    inputImages: "NotRequired[list[ImageGenerationInputImage]]"
    revisedPrompt: "NotRequired[str | None]"
    savedPath: "NotRequired[AbsolutePathBuf | None]"
    status: "str"
    transparentBackground: "NotRequired[bool | None]"
    type: "Literal['imageGeneration']"
    fileId: "NotRequired[str]"
    result: "NotRequired[str]"


class ThreadItemImageView(TypedDict):
    completedAtMs: "NotRequired[int | None]"
    startedAtMs: "NotRequired[int | None]"
    id: "str"
    path: "LegacyAppPathString"
    type: "Literal['imageView']"


class ThreadItemMcpToolCall(TypedDict):
    completedAtMs: "NotRequired[int | None]"
    startedAtMs: "NotRequired[int | None]"
    appContext: "NotRequired[McpToolCallAppContext | None]"
    arguments: "object"
    durationMs: "NotRequired[int | None]"
    environmentId: "NotRequired[str | None]"
    error: "NotRequired[McpToolCallError | None]"
    id: "str"
    mcpAppResourceUri: "NotRequired[str | None]"
    mcpAppUi: "NotRequired[McpAppUi | None]"
    pluginId: "NotRequired[str | None]"
    readOnlyHint: "NotRequired[bool | None]"
    result: "NotRequired[McpToolCallResult | None]"
    server: "str"
    status: "McpToolCallStatus"
    tool: "str"
    type: "Literal['mcpToolCall']"


class ThreadItemOutputDeferral(TypedDict):
    commandExecution: "NotRequired[bool]"
    mcpToolCall: "NotRequired[bool]"


class ThreadItemPlan(TypedDict):
    completedAtMs: "NotRequired[int | None]"
    startedAtMs: "NotRequired[int | None]"
    id: "str"
    text: "str"
    type: "Literal['plan']"


class ThreadItemReasoning(TypedDict):
    completedAtMs: "NotRequired[int | None]"
    startedAtMs: "NotRequired[int | None]"
    content: "NotRequired[list[str]]"
    id: "str"
    summary: "NotRequired[list[str]]"
    type: "Literal['reasoning']"


class ThreadItemSleep(TypedDict):
    completedAtMs: "NotRequired[int | None]"
    startedAtMs: "NotRequired[int | None]"
    durationMs: "int"
    id: "str"
    type: "Literal['sleep']"


class ThreadItemSubAgentActivity(TypedDict):
    completedAtMs: "NotRequired[int | None]"
    startedAtMs: "NotRequired[int | None]"
    agentPath: "str"
    agentThreadId: "str"
    id: "str"
    kind: "SubAgentActivityKind"
    model: "NotRequired[str | None]"
    reasoningEffort: "NotRequired[ReasoningEffort | None]"
    type: "Literal['subAgentActivity']"


class ThreadItemUserMessage(TypedDict):
    completedAtMs: "NotRequired[int | None]"
    startedAtMs: "NotRequired[int | None]"
    clientId: "NotRequired[str | None]"
    content: "list[UserInput]"
    id: "str"
    type: "Literal['userMessage']"


class ThreadItemWebSearch(TypedDict):
    completedAtMs: "NotRequired[int | None]"
    startedAtMs: "NotRequired[int | None]"
    action: "NotRequired[WebSearchAction | None]"
    id: "str"
    query: "str"
    results: "NotRequired[list[object] | None]"
    type: "Literal['webSearch']"


ThreadItemsListAnchor: TypeAlias = "ThreadItemsListAnchorItem"


class ThreadItemsListAnchorItem(TypedDict):
    itemId: "str"
    type: "Literal['item']"


ThreadItemsListCursor: TypeAlias = "str | ThreadItemsListAnchor"


class ThreadItemsListParams(TypedDict):
    cursor: "NotRequired[ThreadItemsListCursor | None]"
    deferOutput: "NotRequired[ThreadItemOutputDeferral | None]"
    limit: "NotRequired[int | None]"
    sortDirection: "NotRequired[SortDirection | None]"
    threadId: "str"
    turnId: "NotRequired[str | None]"


class ThreadItemsListResponse(TypedDict):
    backwardsCursor: "NotRequired[str | None]"
    data: "list[ThreadItemEntry]"
    nextCursor: "NotRequired[str | None]"


class ThreadItemsReadParams(TypedDict):
    itemIds: "list[str]"
    threadId: "str"
    turnId: "str"


class ThreadItemsReadResponse(TypedDict):
    data: "list[ThreadItemEntry]"


ThreadListCwdFilter: TypeAlias = "str | list[str]"


class ThreadListParams(TypedDict):
    ancestorThreadId: "NotRequired[str | None]"
    archived: "NotRequired[bool | None]"
    attachedToThreadId: "NotRequired[str | None]"
    currentAccountOnly: "NotRequired[bool]"
    cursor: "NotRequired[str | None]"
    cwd: "NotRequired[ThreadListCwdFilter | None]"
    excludedThreadIds: "NotRequired[list[str] | None]"
    includeAttachedThreads: "NotRequired[bool]"
    includedThreadIds: "NotRequired[list[str] | None]"
    limit: "NotRequired[int | None]"
    modelProviders: "NotRequired[list[str] | None]"
    originators: "NotRequired[list[str] | None]"
    parentThreadId: "NotRequired[str | None]"
    projectId: "NotRequired[str | None]"
    searchTerm: "NotRequired[str | None]"
    sectionId: "NotRequired[str | None]"
    sortDirection: "NotRequired[SortDirection | None]"
    sortKey: "NotRequired[ThreadSortKey | None]"
    sourceKinds: "NotRequired[list[ThreadSourceKind] | None]"
    useStateDbOnly: "NotRequired[bool]"


class ThreadListResponse(TypedDict):
    backwardsCursor: "NotRequired[str | None]"
    data: "list[Thread]"
    nextCursor: "NotRequired[str | None]"
    readStates: "NotRequired[dict[str, ThreadReadState] | None]"


class ThreadLoadedListParams(TypedDict):
    cursor: "NotRequired[str | None]"
    limit: "NotRequired[int | None]"


class ThreadLoadedListResponse(TypedDict):
    data: "list[str]"
    nextCursor: "NotRequired[str | None]"


class ThreadNameUpdatedNotification(TypedDict):
    threadId: "str"
    threadName: "NotRequired[str | None]"


class ThreadQueueListParams(TypedDict):
    cursor: "NotRequired[str | None]"
    limit: "NotRequired[int | None]"
    threadId: "str"


class ThreadQueueListResponse(TypedDict):
    data: "list[QueuedSubmission]"
    nextCursor: "NotRequired[str | None]"


class ThreadReadParams(TypedDict):
    includeTurns: "NotRequired[bool]"
    threadId: "str"


class ThreadReadResponse(TypedDict):
    readState: "NotRequired[ThreadReadState | None]"
    thread: "Thread"


class ThreadReadState(TypedDict):
    firstUnread: "NotRequired[ThreadUnreadPosition | None]"
    revision: "str"


class ThreadResumeInitialTurnsPageParams(TypedDict):
    itemsView: "NotRequired[TurnItemsView | None]"
    limit: "NotRequired[int | None]"
    sortDirection: "NotRequired[SortDirection | None]"


class ThreadResumeParams(TypedDict):
    approvalPolicy: "NotRequired[AskForApproval | None]"
    approvalsReviewer: "NotRequired[ApprovalsReviewer | None]"
    baseInstructions: "NotRequired[str | None]"
    config: "NotRequired[dict[str, object] | None]"
    cwd: "NotRequired[str | None]"
    developerInstructions: "NotRequired[str | None]"
    excludeTurns: "NotRequired[bool]"
    history: "NotRequired[list[object] | None]"
    initialTurnsPage: "NotRequired[ThreadResumeInitialTurnsPageParams | None]"
    model: "NotRequired[str | None]"
    modelProvider: "NotRequired[str | None]"
    path: "NotRequired[str | None]"
    permissions: "NotRequired[str | None]"
    personality: "NotRequired[Personality | None]"
    runtimeWorkspaceRoots: "NotRequired[list[AbsolutePathBuf] | None]"
    sandbox: "NotRequired[SandboxMode | None]"
    serviceTier: "NotRequired[str | None]"
    threadId: "str"


class ThreadResumeResponse(TypedDict):
    activePermissionProfile: "NotRequired[ActivePermissionProfile | None]"
    approvalPolicy: "AskForApproval"
    approvalsReviewer: "ApprovalsReviewer"
    collaborationMode: "NotRequired[CollaborationMode | None]"
    cwd: "AbsolutePathBuf"
    disabledPluginIds: "NotRequired[list[str]]"
    initialTurnsPage: "NotRequired[TurnsPage | None]"
    instructionSources: "NotRequired[list[LegacyAppPathString]]"
    itemsBackwardsCursor: "NotRequired[str | None]"
    model: "str"
    modelProvider: "str"
    multiAgentMode: "NotRequired[MultiAgentMode]"
    reasoningEffort: "NotRequired[ReasoningEffort | None]"
    runtimeWorkspaceRoots: "NotRequired[list[AbsolutePathBuf]]"
    sandbox: "SandboxPolicy"
    serviceTier: "NotRequired[str | None]"
    thread: "Thread"
    turnsBackwardsCursor: "NotRequired[str | None]"


class ThreadRevertParams(TypedDict):
    beforeTurnId: "str"
    threadId: "str"


class ThreadRevertResponse(TypedDict):
    itemsBackwardsCursor: "NotRequired[str | None]"
    thread: "Thread"
    turnsBackwardsCursor: "NotRequired[str | None]"


class ThreadSearchOccurrence(TypedDict):
    itemId: "str"
    snippet: "str"
    snippetMatchRange: "ThreadSearchTextRange"
    turnCursor: "str"
    turnId: "str"


class ThreadSearchOccurrencesParams(TypedDict):
    cursor: "NotRequired[str | None]"
    limit: "NotRequired[int | None]"
    searchTerm: "str"
    threadId: "str"


class ThreadSearchOccurrencesResponse(TypedDict):
    data: "list[ThreadSearchOccurrence]"
    nextCursor: "NotRequired[str | None]"


class ThreadSearchParams(TypedDict):
    archived: "NotRequired[bool | None]"
    currentAccountOnly: "NotRequired[bool]"
    cursor: "NotRequired[str | None]"
    includeAttachedThreads: "NotRequired[bool]"
    limit: "NotRequired[int | None]"
    searchTerm: "str"
    sortDirection: "NotRequired[SortDirection | None]"
    sortKey: "NotRequired[ThreadSearchSortKey | None]"
    sourceKinds: "NotRequired[list[ThreadSourceKind] | None]"


class ThreadSearchResponse(TypedDict):
    backwardsCursor: "NotRequired[str | None]"
    data: "list[ThreadSearchResult]"
    nextCursor: "NotRequired[str | None]"


class ThreadSearchResult(TypedDict):
    snippet: "str"
    thread: "Thread"


ThreadSearchSortKey: TypeAlias = "Literal['created_at', 'updated_at', 'recency_at']"


class ThreadSearchTextRange(TypedDict):
    end: "int"
    start: "int"


class ThreadSection(TypedDict):
    appearance: "NotRequired[ThreadSectionAppearance | None]"
    id: "str"
    name: "str"


class ThreadSectionAppearance(TypedDict):
    color: "NotRequired[str | None]"
    icon: "NotRequired[str | None]"


class ThreadSetNameParams(TypedDict):
    name: "str"
    threadId: "str"


class ThreadSetNameResponse(TypedDict):
    pass


class ThreadSettings(TypedDict):
    activePermissionProfile: "NotRequired[ActivePermissionProfile | None]"
    approvalPolicy: "AskForApproval"
    approvalsReviewer: "ApprovalsReviewer"
    collaborationMode: "CollaborationMode"
    cwd: "AbsolutePathBuf"
    disabledPluginIds: "NotRequired[list[str]]"
    effort: "NotRequired[ReasoningEffort | None]"
    environments: "NotRequired[list[ThreadEnvironment] | None]"
    model: "str"
    modelProvider: "str"
    multiAgentMode: "NotRequired[MultiAgentMode]"
    personality: "NotRequired[Personality | None]"
    sandboxPolicy: "SandboxPolicy"
    serviceTier: "NotRequired[str | None]"
    summary: "NotRequired[ReasoningSummary | None]"


class ThreadSettingsUpdateParams(TypedDict):
    approvalPolicy: "NotRequired[AskForApproval | None]"
    approvalsReviewer: "NotRequired[ApprovalsReviewer | None]"
    collaborationMode: "NotRequired[CollaborationMode | None]"
    cwd: "NotRequired[str | None]"
    disabledPluginIds: "NotRequired[list[str] | None]"
    effort: "NotRequired[ReasoningEffort | None]"
    environments: "NotRequired[list[TurnEnvironmentParams] | None]"
    model: "NotRequired[str | None]"
    multiAgentMode: "NotRequired[MultiAgentMode | None]"
    permissions: "NotRequired[str | None]"
    personality: "NotRequired[Personality | None]"
    sandboxPolicy: "NotRequired[SandboxPolicy | None]"
    serviceTier: "NotRequired[str | None]"
    summary: "NotRequired[ReasoningSummary | None]"
    threadId: "str"


class ThreadSettingsUpdateResponse(TypedDict):
    pass


class ThreadSettingsUpdatedNotification(TypedDict):
    threadId: "str"
    threadSettings: "ThreadSettings"


ThreadSortKey: TypeAlias = "Literal['created_at', 'updated_at', 'recency_at', 'section_position']"


ThreadSource: TypeAlias = "str"


ThreadSourceKind: TypeAlias = "Literal['cli', 'vscode', 'exec', 'appServer', 'subAgent', 'subAgentReview', 'subAgentCompact', 'subAgentThreadSpawn', 'subAgentOther', 'unknown']"


class ThreadStartParams(TypedDict):
    allowProviderModelFallback: "NotRequired[bool]"
    approvalPolicy: "NotRequired[AskForApproval | None]"
    approvalsReviewer: "NotRequired[ApprovalsReviewer | None]"
    baseInstructions: "NotRequired[str | None]"
    config: "NotRequired[dict[str, object] | None]"
    cwd: "NotRequired[str | None]"
    daybreakEnabled: "NotRequired[bool | None]"
    developerInstructions: "NotRequired[str | None]"
    dynamicTools: "NotRequired[list[DynamicToolSpec] | None]"
    environments: "NotRequired[list[TurnEnvironmentParams] | None]"
    ephemeral: "NotRequired[bool | None]"
    experimentalRawEvents: "NotRequired[bool]"
    historyMode: "NotRequired[ThreadHistoryMode | None]"
    mockExperimentalField: "NotRequired[str | None]"
    model: "NotRequired[str | None]"
    modelProvider: "NotRequired[str | None]"
    multiAgentMode: "NotRequired[MultiAgentMode | None]"
    permissions: "NotRequired[str | None]"
    personality: "NotRequired[Personality | None]"
    projectId: "NotRequired[str | None]"
    runtimeWorkspaceRoots: "NotRequired[list[AbsolutePathBuf] | None]"
    sandbox: "NotRequired[SandboxMode | None]"
    selectedCapabilityRoots: "NotRequired[list[SelectedCapabilityRoot] | None]"
    serviceName: "NotRequired[str | None]"
    serviceTier: "NotRequired[str | None]"
    sessionStartSource: "NotRequired[ThreadStartSource | None]"
    threadSource: "NotRequired[ThreadSource | None]"


class ThreadStartResponse(TypedDict):
    activePermissionProfile: "NotRequired[ActivePermissionProfile | None]"
    approvalPolicy: "AskForApproval"
    approvalsReviewer: "ApprovalsReviewer"
    cwd: "AbsolutePathBuf"
    disabledPluginIds: "NotRequired[list[str]]"
    instructionSources: "NotRequired[list[LegacyAppPathString]]"
    model: "str"
    modelProvider: "str"
    multiAgentMode: "NotRequired[MultiAgentMode]"
    reasoningEffort: "NotRequired[ReasoningEffort | None]"
    runtimeWorkspaceRoots: "NotRequired[list[AbsolutePathBuf]]"
    sandbox: "SandboxPolicy"
    serviceTier: "NotRequired[str | None]"
    thread: "Thread"


ThreadStartSource: TypeAlias = "Literal['startup', 'clear']"


class ThreadStartedNotification(TypedDict):
    thread: "Thread"


ThreadStatus: TypeAlias = "ThreadStatusNotLoaded | ThreadStatusIdle | ThreadStatusSystemError | ThreadStatusActive"


class ThreadStatusActive(TypedDict):
    activeFlags: "list[ThreadActiveFlag]"
    type: "Literal['active']"


class ThreadStatusChangedNotification(TypedDict):
    status: "ThreadStatus"
    threadId: "str"


class ThreadStatusIdle(TypedDict):
    type: "Literal['idle']"


class ThreadStatusNotLoaded(TypedDict):
    type: "Literal['notLoaded']"


class ThreadStatusSystemError(TypedDict):
    type: "Literal['systemError']"


class ThreadTokenUsage(TypedDict):
    last: "TokenUsageBreakdown"
    modelContextWindow: "NotRequired[int | None]"
    total: "TokenUsageBreakdown"


class ThreadTokenUsageUpdatedNotification(TypedDict):
    threadId: "str"
    tokenUsage: "ThreadTokenUsage"
    turnId: "str"


class ThreadTurnsListParams(TypedDict):
    cursor: "NotRequired[str | None]"
    itemsView: "NotRequired[TurnItemsView | None]"
    limit: "NotRequired[int | None]"
    sortDirection: "NotRequired[SortDirection | None]"
    threadId: "str"


class ThreadTurnsListResponse(TypedDict):
    backwardsCursor: "NotRequired[str | None]"
    data: "list[Turn]"
    nextCursor: "NotRequired[str | None]"


class ThreadUnarchiveParams(TypedDict):
    threadId: "str"


class ThreadUnarchiveResponse(TypedDict):
    thread: "Thread"


class ThreadUnarchivedNotification(TypedDict):
    threadId: "str"


ThreadUnreadPosition: TypeAlias = "ThreadUnreadPositionThreadStart | ThreadUnreadPositionTurn"


class ThreadUnreadPositionThreadStart(TypedDict):
    type: "Literal['threadStart']"


class ThreadUnreadPositionTurn(TypedDict):
    turnId: "str"
    type: "Literal['turn']"


class TokenUsageBreakdown(TypedDict):
    cacheWriteInputTokens: "NotRequired[int]"
    cachedInputTokens: "int"
    inputTokens: "int"
    outputTokens: "int"
    reasoningOutputTokens: "int"
    totalTokens: "int"


class ToolRequestUserInputAnswer(TypedDict):
    answers: "list[str]"


class ToolRequestUserInputOption(TypedDict):
    description: "str"
    label: "str"


class ToolRequestUserInputParams(TypedDict):
    autoResolutionMs: "NotRequired[int | None]"
    isBlocking: "bool"
    itemId: "str"
    questions: "list[ToolRequestUserInputQuestion]"
    threadId: "str"
    turnId: "str"


class ToolRequestUserInputQuestion(TypedDict):
    header: "str"
    id: "str"
    isOther: "NotRequired[bool]"
    isSecret: "NotRequired[bool]"
    options: "NotRequired[list[ToolRequestUserInputOption] | None]"
    question: "str"


class ToolRequestUserInputResponse(TypedDict):
    answers: "dict[str, ToolRequestUserInputAnswer]"


class ToolsV2(TypedDict):
    web_search: "NotRequired[WebSearchToolConfig | None]"


TrustedContacts: TypeAlias = "Literal['check', 'skip']"


class Turn(TypedDict):
    completedAt: "NotRequired[int | None]"
    durationMs: "NotRequired[int | None]"
    error: "NotRequired[TurnError | None]"
    id: "str"
    items: "list[ThreadItem]"
    itemsView: "NotRequired[TurnItemsView]"
    rootTurnId: "NotRequired[str | None]"
    startedAt: "NotRequired[int | None]"
    status: "TurnStatus"


class TurnCompletedNotification(TypedDict):
    threadId: "str"
    turn: "Turn"


class TurnDiffUpdatedNotification(TypedDict):
    diff: "str"
    threadId: "str"
    turnId: "str"


class TurnEnvironmentParams(TypedDict):
    cwd: "LegacyAppPathString"
    environmentId: "str"
    runtimeWorkspaceRoots: "NotRequired[list[LegacyAppPathString] | None]"


class TurnError(TypedDict):
    additionalDetails: "NotRequired[str | None]"
    codexErrorInfo: "NotRequired[CodexErrorInfo | None]"
    message: "str"
    misalignment: "NotRequired[MisalignmentErrorDetails | None]"


class TurnInterruptParams(TypedDict):
    threadId: "str"
    turnId: "str"


class TurnInterruptResponse(TypedDict):
    pass


TurnItemsView: TypeAlias = "Literal['notLoaded'] | Literal['summary'] | Literal['full']"


class TurnPlanStep(TypedDict):
    status: "TurnPlanStepStatus"
    step: "str"


TurnPlanStepStatus: TypeAlias = "Literal['pending', 'inProgress', 'completed']"


class TurnPlanUpdatedNotification(TypedDict):
    explanation: "NotRequired[str | None]"
    plan: "list[TurnPlanStep]"
    threadId: "str"
    turnId: "str"


class TurnStartParams(TypedDict):
    additionalContext: "NotRequired[dict[str, AdditionalContextEntry] | None]"
    approvalPolicy: "NotRequired[AskForApproval | None]"
    approvalsReviewer: "NotRequired[ApprovalsReviewer | None]"
    clientUserMessageId: "NotRequired[str | None]"
    collaborationMode: "NotRequired[CollaborationMode | None]"
    cwd: "NotRequired[str | None]"
    cyberAccessProgram: "NotRequired[CyberAccessProgram | None]"
    disabledPluginIds: "NotRequired[list[str] | None]"
    effort: "NotRequired[ReasoningEffort | None]"
    environments: "NotRequired[list[TurnEnvironmentParams] | None]"
    input: "list[UserInput]"
    model: "NotRequired[str | None]"
    multiAgentMode: "NotRequired[MultiAgentMode | None]"
    outputSchema: "NotRequired[object]"
    parentTurnId: "NotRequired[str | None]"
    permissions: "NotRequired[str | None]"
    personality: "NotRequired[Personality | None]"
    responsesapiClientMetadata: "NotRequired[dict[str, str] | None]"
    responsesapiClientMetadataPatch: "NotRequired[dict[str, str] | None]"
    rootTurnId: "NotRequired[str | None]"
    runtimeWorkspaceRoots: "NotRequired[list[AbsolutePathBuf] | None]"
    sandboxPolicy: "NotRequired[SandboxPolicy | None]"
    serviceTier: "NotRequired[str | None]"
    serviceTierForTurn: "NotRequired[str | None]"
    summary: "NotRequired[ReasoningSummary | None]"
    threadId: "str"
    toolOutput: "NotRequired[TurnToolOutput | None]"
    turnTrigger: "NotRequired[str | None]"


class TurnStartResponse(TypedDict):
    turn: "Turn"


class TurnStartedNotification(TypedDict):
    threadId: "str"
    turn: "Turn"


TurnStatus: TypeAlias = "Literal['completed', 'interrupted', 'failed', 'inProgress']"


class TurnSteerParams(TypedDict):
    additionalContext: "NotRequired[dict[str, AdditionalContextEntry] | None]"
    clientUserMessageId: "NotRequired[str | None]"
    expectedTurnId: "str"
    input: "list[UserInput]"
    responsesapiClientMetadata: "NotRequired[dict[str, str] | None]"
    responsesapiClientMetadataPatch: "NotRequired[dict[str, str] | None]"
    threadId: "str"


class TurnSteerResponse(TypedDict):
    turnId: "str"


class TurnToolOutput(TypedDict):
    name: "str"
    namespace: "NotRequired[str | None]"
    output: "FunctionCallOutputBody"
    retain: "NotRequired[bool]"


class TurnsPage(TypedDict):
    backwardsCursor: "NotRequired[str | None]"
    data: "list[Turn]"
    nextCursor: "NotRequired[str | None]"


UserInput: TypeAlias = "UserInputText | UserInputImage | UserInputLocalImage | UserInputAudio | UserInputLocalAudio | UserInputSkill | UserInputMention"


class UserInputAudio(TypedDict):
    type: "Literal['audio']"
    url: "NotRequired[str]"
    fileId: "NotRequired[str]"


class UserInputImage(TypedDict):
    detail: "NotRequired[ImageDetail | None]"
    type: "Literal['image']"
    url: "NotRequired[str]"
    fileId: "NotRequired[str]"


class UserInputLocalAudio(TypedDict):
    path: "str"
    type: "Literal['localAudio']"


class UserInputLocalImage(TypedDict):
    detail: "NotRequired[ImageDetail | None]"
    path: "str"
    type: "Literal['localImage']"


class UserInputMention(TypedDict):
    name: "str"
    path: "str"
    type: "Literal['mention']"


class UserInputSkill(TypedDict):
    name: "str"
    path: "str"
    type: "Literal['skill']"


class UserInputText(TypedDict):
    text: "str"
    text_elements: "NotRequired[list[TextElement]]"
    type: "Literal['text']"


Verbosity: TypeAlias = "Literal['low', 'medium', 'high']"


class WarningNotification(TypedDict):
    message: "str"
    threadId: "NotRequired[str | None]"


WebSearchAction: TypeAlias = "WebSearchActionSearch | WebSearchActionOpenPage | WebSearchActionFindInPage | WebSearchActionOther"


class WebSearchActionFindInPage(TypedDict):
    pattern: "NotRequired[str | None]"
    type: "Literal['findInPage']"
    url: "NotRequired[str | None]"


class WebSearchActionOpenPage(TypedDict):
    type: "Literal['openPage']"
    url: "NotRequired[str | None]"


class WebSearchActionOther(TypedDict):
    type: "Literal['other']"


class WebSearchActionSearch(TypedDict):
    queries: "NotRequired[list[str] | None]"
    query: "NotRequired[str | None]"
    type: "Literal['search']"


WebSearchContextSize: TypeAlias = "Literal['low', 'medium', 'high']"


class WebSearchLocation(TypedDict):
    city: "NotRequired[str | None]"
    country: "NotRequired[str | None]"
    region: "NotRequired[str | None]"
    timezone: "NotRequired[str | None]"


WebSearchMode: TypeAlias = "Literal['disabled', 'cached', 'indexed', 'live']"


WebSearchProvider: TypeAlias = "Literal['standalone', 'search_mcp']"


class WebSearchToolConfig(TypedDict):
    allowed_domains: "NotRequired[list[str] | None]"
    context_size: "NotRequired[WebSearchContextSize | None]"
    location: "NotRequired[WebSearchLocation | None]"
